"""Measure models and data: errors, importances, profiles, impurity."""
