import cython

cdef double LOG_2

cpdef change_condition(const unsigned char[::1] fails, int place, int step, int[::1] n_failing, int[::1] failing_sum)
cpdef (double, double) sum_gains(
    const unsigned char[::1] counted, const int[::1] n_failing, const int[::1] failing_sum, const double[::1] weight,
    const double[::1] missed, double[::1] gained, double[::1] gained_missed
)

@cython.locals(
    group=cython.Py_ssize_t, at=cython.Py_ssize_t, row=cython.Py_ssize_t, side=cython.Py_ssize_t, bit=cython.Py_ssize_t,
    bits=cython.int
)
cpdef sum_holding(
    const unsigned char[:, ::1] holds, const long long[::1] rows, const double[::1] weight,
    const unsigned char[::1] is_own, double[:, ::1] sums
)
@cython.locals(
    rule=cython.Py_ssize_t, own=cython.double, other=cython.double, smaller=cython.double, larger=cython.double
)
cpdef changed_lengths(
    const unsigned char[::1] chosen, const double[::1] bits, const double[:, ::1] gained, const double[:, ::1] lost,
    const double[::1] covered, const double[::1] total, double share, double[::1] lengths
)
cpdef double exception_bits(double own, double other, double own_total, double other_total) noexcept nogil
cpdef double log2_choose(double total, double chosen) noexcept nogil
