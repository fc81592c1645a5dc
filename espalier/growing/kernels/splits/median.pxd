from espalier.growing.kernels.arguments cimport Medians, Workspace

cdef void add_rows(Workspace work, const int[::1] rows, long long start, long long stop, double share) noexcept nogil
cdef void _add_row(Workspace work, int row, double share) noexcept nogil
cdef void remove_rows(Medians medians, const int[::1] rows, long long start, long long stop) noexcept nogil
cdef double deviation(Workspace work) noexcept nogil
cdef double group_deviation(Workspace work, const int[::1] rows, long long start, long long stop) noexcept nogil
cdef double deviation_with_share(
    Workspace work, const int[::1] rows, long long start, long long stop, long long extra_start, long long extra_stop,
    double share
) noexcept nogil
cpdef void prefix_deviations(
    Workspace work, const int[::1] rows, long long start, long long stop, long long extra_start, long long extra_stop,
    double[::1] answer
) noexcept nogil
cdef void deviations_of_order(
    Workspace work, const int[::1] rows, long long start, long long end, long long stop
) noexcept nogil
cdef double deviations_of_branches(Medians medians, long long n_left, long long n_right, int branch) noexcept nogil
