"""Compiled code: arrays and numbers in, arrays and numbers out. The only place that sees numba.

=============  ==========================================================================================
`jit`          the one decorator, its cache folder, `warm_up`
`codes`        small whole numbers shared with Python, and the named tuples that kernels take
`encode`       rank-coding of columns: radix sort, dense ranks, presorted orders
`impurity`     what a group of rows adds to a score; chi-square; costs
`deviation`    sums of absolute deviations from the median, for every prefix of a sequence of rows
`offers`       the best split that one attribute offers at a node
`surrogates`   the cuts that stand in for a node's own test (rpart)
`grow`         any tree that a configuration can ask for
`grow_binary`  the fast lane: complete data, two branches
`linear`       linear models of the nodes of a grown tree: least squares, columns dropped
`route`        many rows down one tree
`freeze`       nodes in the order of their making -> preorder arrays
=============  ==========================================================================================

A kernel never raises: "no split" and "stopped" are values. Its docstring is its contract.
"""
