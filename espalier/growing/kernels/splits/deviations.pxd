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
cdef (double, double, double) with_row(
    Workspace work, int row, double share, double whole, double mean, double squares
) noexcept nogil
cdef bint takes_deviations(int criterion) noexcept nogil
cdef double deviation_term(int criterion, double weight, double amount) noexcept nogil
cdef double deviation_of_rows(
    Workspace work, const int[::1] rows, long long start, long long stop, long long extra_start, long long extra_stop,
    double share
) noexcept nogil
cdef void fill_prefixes(Workspace work, const int[::1] rows, long long start, long long end, long long stop) noexcept nogil
cpdef void write_prefixes(
    Workspace work, const int[::1] rows, long long start, long long stop, long long extra_start, long long extra_stop,
    double[::1] answer
) noexcept nogil
cdef double prefix_terms(
    Workspace work, long long n_left, long long n_right, double left_weight, int branch
) noexcept nogil
