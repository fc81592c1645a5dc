from espalier.growing.kernels.arguments cimport Categories, SplitSearch, Workspace

cdef int EXHAUSTIVE_CATEGORIES, N_POWER_STEPS

cdef void best_subset_split(Workspace work, int[::1] ints) noexcept nogil
cdef void best_one_vs_rest_split(Workspace work, int[::1] ints) noexcept nogil
cdef void _try_masks(Workspace work, int[::1] ints) noexcept nogil
cdef void _try_splits_of_order(Workspace work, int which, int[::1] ints) noexcept nogil
cdef void _try_split(Workspace work, int below, int above, int at, bint first_is_left, int[::1] ints) noexcept nogil
cdef double _information(SplitSearch search, double left_weight, double right_weight, int side) noexcept nogil
cdef void _set_right(Workspace work) noexcept nogil
cdef void _order_categories(Workspace work, int which) noexcept nogil
cdef double _unit_of_keys(Workspace work) noexcept nogil
cdef void _principal_component(Workspace work) noexcept nogil
cdef double _coordinate(Categories categories, const double *group, double weight) noexcept nogil
cdef void _deviations_of_categories(Workspace work) noexcept nogil
cdef double _one_against_rest_deviation(Workspace work, int j, int branch) noexcept nogil
