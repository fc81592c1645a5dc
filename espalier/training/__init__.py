"""Training and pruning: check the rows, set some of them aside, grow a tree, prune it, and measure its error."""
