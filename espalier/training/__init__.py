"""Train and prune: check the rows, set some aside, grow, prune, measure."""
