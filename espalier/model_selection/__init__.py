"""Compare ways of training on the same folds."""
