"""Counterfactuals: the nearest changes of a row that lead to another answer."""
