"""Counterfactuals: the smallest changes of a row that lead to another prediction."""
