from espalier.growing.kernels.arguments cimport Categories, GrowParameters, SplitSearch, Sums, Targets, Workspace

cdef int EXHAUSTIVE_CATEGORIES
cdef int N_POWER_STEPS

cdef void best_subset_split(GrowParameters parameters, Targets targets, Workspace work, int[::1] ints) noexcept nogil
cdef void best_one_vs_rest_split(
    GrowParameters parameters, Targets targets, Workspace work, int[::1] ints
) noexcept nogil
cdef void _try_masks(GrowParameters parameters, Targets targets, Workspace work, int[::1] ints) noexcept nogil
cdef void _try_splits_of_order(
    GrowParameters parameters, Targets targets, Workspace work, int which, int[::1] ints
) noexcept nogil
cdef void _try_split(
    GrowParameters parameters, Targets targets, Workspace work, int below, int above, int at, bint first_is_left,
    int[::1] ints
) noexcept nogil
cdef double _information(
    SplitSearch search, double left_weight, double right_weight, int side
) noexcept nogil
cdef void _set_right(GrowParameters parameters, Sums sums) noexcept nogil
cdef void _order_categories(GrowParameters parameters, Workspace work, int which) noexcept nogil
cdef double _unit_of_keys(GrowParameters parameters, Workspace work) noexcept nogil
cdef void _principal_component(GrowParameters parameters, Workspace work) noexcept nogil
cdef double _coordinate(Categories categories, const double *group, double weight) noexcept nogil
cdef void _deviations_of_categories(Targets targets, Workspace work) noexcept nogil
cdef double _one_against_rest_deviation(Targets targets, Workspace work, int j, int branch) noexcept nogil
cdef double _small_deviation(
    Targets targets, Workspace work, int first, int last, int extra_first, int extra_last
) noexcept nogil
cdef void _sort_pairs(
    double[::1] values, double[::1] weights, int count, double[::1] other_values, double[::1] other_weights
) noexcept nogil
