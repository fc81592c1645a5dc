"""Train and prune: check the rows, hold some out, grow, prune, evaluate."""
