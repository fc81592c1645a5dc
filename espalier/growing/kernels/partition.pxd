from espalier.growing.kernels.growth cimport Branches, RowSequences


cdef void partition_rows(
    RowSequences rows, Branches branches, long long start, long long stop, long long base, long long needed
) noexcept nogil
cdef void partition_order(
    RowSequences rows, Branches branches, long long order, long long start, long long stop, long long base,
    long long needed
) noexcept nogil
cdef void _partition(
    RowSequences rows, Branches branches, const int[::1] sequence, bint has_weights, long long start, long long stop
) noexcept nogil
cdef void _place_branches(Branches branches) noexcept nogil
cpdef copy_rows(
    const int[:, ::1] codes, const int[::1] target_class, const double[::1] target, const int[:, ::1] orders,
    const int[::1] master, long long start, long long stop, int[::1] number, int[:, ::1] to_codes, int[::1] to_class,
    double[::1] to_target, int[:, ::1] to_orders
)
