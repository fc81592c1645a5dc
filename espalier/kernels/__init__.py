"""Compiled code: arrays and numbers in, arrays and numbers out. The only place that sees numba.

=============  ==========================================================================================
`jit`          the decorators, numba's passes; `kept` where machine code is kept and found again
`codes`        small whole numbers shared with Python, and the named tuples that kernels take
`encode`       rank-coding of columns: radix sort, dense ranks, presorted orders
`impurity`     what a group of rows adds to a score; chi-square; costs
`deviation`    sums of absolute deviations from the median, for every prefix of a sequence of rows
`scratch`      the arrays that growing writes while it looks for a split; None for what is not asked for
`offers`       what one attribute offers a node, and how its worth is told
`ordered`      the best cut of an ordered attribute; `blocks` the stretches that cannot hold it
`nominal`      the best division of a nominal one; `groups` its categories, `subsets` those divided in two
`choosing`     which attribute a node is split by
`nodes`        the tables of nodes; `children` what stands in a node
`sides`        the test of a node and the branch of each row; `dealing` the rows dealt out to the children
`surrogates`   the cuts that stand in for a node's own test (rpart)
`validating`   validation rows on their way down; `waiting` nodes not yet split, best first where asked
`grow`         any tree that a configuration can ask for: the loop over all of these
`grow_binary`  the fast lane: complete data, two branches; `binary_nodes`, `binary_sides`, `own_tables` its parts
`scans`        the best cut of a column there; `counted_scans` of a coded one
`fast_table`   the columns as it takes them, sorted by `packed_sort`; `fast` the threads
`fast_nodes`   the nodes as it keeps them; `joining` its parts made one tree
`linear`       linear models of the nodes of a grown tree, columns dropped; `least_squares` how each is solved
`route`        many rows down one tree
`distribute`   weighted rows at every node, for pruning; `subtree_raising` estimated errors and raised branches
`csv_cells`    the cells of CSV where they stand
`freeze`       nodes in the order of their making -> preorder arrays
=============  ==========================================================================================

A kernel never raises: "no split" and "stopped" are values. Its docstring is its contract.
"""
