"""Growing a tree: training data, encoded columns, the binary and the general grower, conversion to a `Tree`."""
