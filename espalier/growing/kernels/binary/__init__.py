"""Kernels of the binary grower: complete data, threshold splits, Gini or variance."""
