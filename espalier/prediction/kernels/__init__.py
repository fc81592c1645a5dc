"""Compiled code that predicts many rows: arrays and numbers in, arrays and numbers out."""
