# The numbers of node_tests.py, for kernels.
cdef enum:
    LEAF = 0
    NUMERIC = 1
    NOMINAL = 2
    UNKNOWN = 3
