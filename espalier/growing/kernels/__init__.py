"""Compiled code that grows trees: arrays and numbers in, arrays and numbers out."""
