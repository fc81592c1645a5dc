"""Compare training configurations on the same folds."""
