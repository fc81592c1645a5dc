from espalier.growing.kernels.arguments cimport Workspace

cdef void best_nominal_split(
    Workspace work, const int[::1] master, int attribute, bint paid, int[::1] ints, double[::1] reals
) noexcept nogil
cdef void _multiway_split(Workspace work, int[::1] ints) noexcept nogil
cdef double _weigh_branches(Workspace work, int unknown_code, double[::1] reals) noexcept nogil
cdef void _place_unknown(Workspace work, double terms, int n_heavy, int[::1] ints) noexcept nogil
cdef void _try_unknown_test(Workspace work, int[::1] ints) noexcept nogil
cdef double _p_value(Workspace work, int unknown_code) noexcept nogil
cdef double _gain_with_share(Workspace work) noexcept nogil
cdef double _deviations_with_share(Workspace work, int branch, double share) noexcept nogil
