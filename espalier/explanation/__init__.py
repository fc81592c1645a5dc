"""Explain predictions: paths, contributions, sufficient reasons, counterfactuals and what to ask for next."""
