from espalier.growing.kernels.arguments cimport Categories, EncodedColumns, GrowParameters, Targets, Workspace

cdef void sum_categories(
    GrowParameters parameters, EncodedColumns columns, Targets targets, Workspace work, const int[::1] master,
    int attribute
) noexcept nogil
cdef void fill_buckets(Workspace work, EncodedColumns columns, const int[::1] master) noexcept nogil
cdef double category_weight(GrowParameters parameters, Categories categories, int j) noexcept nogil
cdef double category_size(GrowParameters parameters, Categories categories, int j) noexcept nogil
cdef double category_term(
    GrowParameters parameters, Targets targets, Workspace work, int j, double share, bint with_unknown
) noexcept nogil
cdef double whole_term(GrowParameters parameters, Targets targets, Workspace work, bint with_unknown) noexcept nogil
cdef void set_gain_form(GrowParameters parameters, Targets targets, Workspace work, bint with_unknown) noexcept nogil
cdef void sort_by_key(int[::1] places, Categories categories, int count) noexcept nogil
