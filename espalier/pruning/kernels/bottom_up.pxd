cdef class Tournament:
    cdef double[::1] key
    cdef double[::1] weight
    cdef int[::1] winners
    cdef int n_places


cdef int winner(Tournament tournament, int place) noexcept nogil
cdef void seed(Tournament tournament) noexcept nogil
cdef void update(Tournament tournament, int node) noexcept nogil
cdef void remove(Tournament tournament, int node, int stop) noexcept nogil
cpdef reduce_errors(
    const int[::1] parent, const unsigned char[::1] is_leaf, const double[:] loss, bint ties_prune, bint prune_root,
    bint from_initial, double slack
)
cpdef prune_greedily(
    const int[::1] parent, const int[::1] size, const unsigned char[::1] is_leaf, const double[:] loss,
    bint ties_prune, bint prune_root, bint from_initial, double slack
)
cpdef weakest_links(
    const int[::1] parent, const int[::1] size, const unsigned char[::1] is_leaf, const double[::1] risk, double slack
)
cpdef earliest_above(const int[::1] parent, const long long[::1] step)
