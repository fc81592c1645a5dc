from espalier.growing.kernels.arguments cimport Workspace

cdef double squares_of_rows(
    Workspace work, const int[::1] rows, long long start, long long stop, long long extra_start, long long extra_stop,
    double share
) noexcept nogil
cdef (double, double, double) with_row(
    Workspace work, int row, double share, double whole, double mean, double squares
) noexcept nogil
cdef void prefix_squares(
    Workspace work, const int[::1] rows, long long start, long long stop, long long extra_start, long long extra_stop,
    double[::1] answer
) noexcept nogil
cdef void squares_of_order(
    Workspace work, const int[::1] rows, long long start, long long end, long long stop
) noexcept nogil
