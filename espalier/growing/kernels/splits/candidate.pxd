from espalier.growing.kernels.arguments cimport (
    EncodedColumns, GrowParameters, NodeContext, SplitSearch, Sums, Workspace
)

cdef double TIE_OF_RATIOS
cdef double TIE
cdef double TIE_OF_LOGARITHMS
cdef double MIN_M5_GAIN
cdef double WEIGHT_TOLERANCE

cdef double tie_of_gains(GrowParameters parameters, NodeContext context) noexcept nogil
cdef double tie_of_scores(GrowParameters parameters, double best_score, NodeContext context) noexcept nogil
cdef double negligible_gain(GrowParameters parameters, NodeContext context) noexcept nogil
cdef double _rounding_error(GrowParameters parameters, NodeContext context) noexcept nogil
cdef void start_search(GrowParameters parameters, Workspace work, int attribute, bint paid, int[::1] ints) noexcept nogil
cdef double min_branch_size(GrowParameters parameters, double known_size) noexcept nogil
cdef bint is_heavy_enough(SplitSearch search, double left_size, double right_size, int branch) noexcept nogil
cdef bint is_better(SplitSearch search, double gain, double value) noexcept nogil
cdef double terms_of_branches(GrowParameters parameters, Sums sums, int branch) noexcept nogil
cdef double terms_of_unknown_test(GrowParameters parameters, Sums sums) noexcept nogil
cdef double terms_with_share(GrowParameters parameters, Sums sums, double share) noexcept nogil
cdef void store_branches(Sums sums, int branch) noexcept nogil
cdef void store_unknown_test(Sums sums, int[::1] ints) noexcept nogil
cdef void finish_two(
    GrowParameters parameters, EncodedColumns columns, Workspace work, double gain, int[::1] ints, double[::1] reals
) noexcept nogil
cdef void score_candidate(
    GrowParameters parameters, EncodedColumns columns, Workspace work, double gain, double information, int[::1] ints,
    double[::1] reals
) noexcept nogil
cdef (double, int) _chi_square_of_two(Sums sums, double left_weight, double right_weight) noexcept nogil
