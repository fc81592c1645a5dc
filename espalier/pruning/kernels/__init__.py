"""Compiled code that prunes trees: arrays and numbers in, arrays and numbers out."""
