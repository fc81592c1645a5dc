"""Explain predictions: paths, contributions, sufficient reasons, counterfactuals and the next question."""
