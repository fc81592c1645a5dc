cdef double C45_TAIL
cdef double TINY
cdef int HALVINGS
cdef double RELATIVE_STEP

cpdef double added_errors(double weight, double errors, double confidence, double z, int quantile) noexcept nogil
cdef double larger_errors(double weight, double errors, double z, int quantile) noexcept nogil
cdef double exact_limit(double weight, double errors, double confidence) noexcept nogil
