from espalier.growing.kernels.growth cimport Branches, Growth, NodeTables, RowSequences


cpdef bint begin_root(Growth growth)
cpdef set_node(Growth growth, int node, long long n_rows)
cpdef scan_column(Growth growth, int node)
cpdef int split_node(Growth growth, int node, long long n_rows, long long max_nodes, long long max_codes)
cpdef reserve(NodeTables nodes, long long n_nodes, long long n_codes)
cpdef partition_node(RowSequences rows, Branches branches, long long n_rows, long long n_needed)
cpdef partition_column(RowSequences rows, Branches branches, long long n_rows, long long n_needed)
