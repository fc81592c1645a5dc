"""A trained model: its tree or rules, linear models and training record."""
