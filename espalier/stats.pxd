cdef int MAX_TERMS
cdef double PRECISION
cdef double TINY

cpdef double chi_square_tail(double statistic, long long freedom) noexcept nogil
cpdef double beta_ratio(double x, double a, double b) noexcept nogil
cpdef double beta_series(double x, double a, double b) noexcept nogil
