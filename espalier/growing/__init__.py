"""Growing a tree: training data, encoded columns, two growers, one driver, one finaliser."""
