from espalier.growing.kernels.arguments cimport Workspace

cdef void sum_categories(Workspace work, const int[::1] master, int attribute) noexcept nogil
cdef void fill_buckets(Workspace work, const int[::1] master) noexcept nogil
cdef double category_weight(Workspace work, int j) noexcept nogil
cdef double category_size(Workspace work, int j) noexcept nogil
cdef double category_term(Workspace work, int j, double share, bint with_unknown) noexcept nogil
cdef double whole_term(Workspace work, bint with_unknown) noexcept nogil
cdef void set_gain_form(Workspace work, bint with_unknown) noexcept nogil
cdef void sort_by_key(int[::1] places, const double[::1] key, int count) noexcept nogil
cdef void _sift(int[::1] places, const double[::1] key, int at, int count) noexcept nogil
cdef bint _comes_before(const double[::1] key, int one, int other) noexcept nogil
