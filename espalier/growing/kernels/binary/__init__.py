"""Kernels of the binary grower: complete data, threshold splits, gini or squared error."""
