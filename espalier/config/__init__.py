"""How to train and prune: parameters with their legal values, presets, checks."""
