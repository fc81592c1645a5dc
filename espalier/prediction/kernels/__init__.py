"""Compiled code that answers many rows: arrays and numbers in, arrays and numbers out."""
