cdef double middle_of(double below, double above) noexcept nogil
cpdef write_thresholds(
    const double[::1] below, const double[::1] above, const long long[::1] nodes, double[::1] threshold
)
