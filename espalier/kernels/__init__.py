"""Compiled code: arrays and numbers in, arrays and numbers out. The only place that sees numba.

A kernel never raises: "no split" and "stopped" are values. Its docstring is its contract.
"""
