"""Predict rows with a trained model: one row with its path, or many rows as arrays."""
