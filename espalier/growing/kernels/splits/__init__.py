"""Kernels that find the best split of a node: criteria, candidates, and the choice among them."""
