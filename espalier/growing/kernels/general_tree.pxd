from espalier.growing.kernels.growth cimport Growth


cpdef grow_tree(Growth growth, int depth, long long max_rows_to_delegate, long long max_nodes, long long max_codes)
cdef int _start(Growth growth, int depth) noexcept nogil
cdef long long _take_next(Growth growth) noexcept nogil
cdef int _delegate(Growth growth, long long entry) except -1 nogil
cdef int _grow_node(Growth growth, long long entry, long long max_nodes, long long max_codes) except -1 nogil
cdef void _finish(Growth growth, double weight) noexcept nogil
cdef void _release(
    Growth growth, long long start, long long stop, long long valid_start, long long valid_stop
) noexcept nogil
cdef int _choose(Growth growth, int node, long long start, long long stop) noexcept nogil
cdef int _next_split(Growth growth, long long entry, int node, long long start, long long stop) noexcept nogil
cdef bint _is_subset_split(Growth growth) noexcept nogil
cdef bint split_rows(
    Growth growth, int node, int chosen, long long start, long long stop, long long max_nodes, long long max_codes
) except -1 nogil
cdef bint _assign_rows(Growth growth, int chosen, long long start, long long stop) noexcept nogil
cdef int _add_children(
    Growth growth, int node, int chosen, long long start, long long stop, long long max_codes
) except -1 nogil
cdef bint _move_rows(Growth growth, int first_child, long long start, long long stop) except -1 nogil
cdef int _move_validation_rows(
    Growth growth, int node, long long first_new, long long n_routed, long long start, long long stop
) except -1 nogil
cdef void _choose_splits_of_children(Growth growth, long long first_new) noexcept nogil
