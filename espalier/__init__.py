"""Decision trees: grown, pruned, read."""
