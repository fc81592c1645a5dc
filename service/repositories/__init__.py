"""Queries and writes: functions over a session, and the decision log."""
