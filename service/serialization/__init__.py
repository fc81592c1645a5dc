"""Bytes to columns and back: stored data sets, stored decisions, answers in the formats of tables."""
