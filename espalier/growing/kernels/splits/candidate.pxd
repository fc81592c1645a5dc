from espalier.growing.kernels.arguments cimport SplitSearch, Sums, Workspace

cdef double TIE_OF_RATIOS, TIE, TIE_OF_LOGARITHMS, MIN_M5_GAIN

cdef double tie_of_gains(Workspace work) noexcept nogil
cdef double tie_of_scores(Workspace work) noexcept nogil
cdef double negligible_gain(Workspace work) noexcept nogil
cdef double _rounding_error(Workspace work) noexcept nogil
cdef void start_search(Workspace work, int attribute, bint paid, int[::1] ints) noexcept nogil
cdef double min_branch_size(Workspace work, double known_size) noexcept nogil
cdef bint is_heavy_enough(SplitSearch search, double left_size, double right_size, int branch) noexcept nogil
cdef bint is_better(SplitSearch search, double gain, double value) noexcept nogil
cdef double terms_of_branches(Workspace work, int branch) noexcept nogil
cdef double terms_of_unknown_test(Workspace work) noexcept nogil
cdef double terms_with_share(Workspace work, double share) noexcept nogil
cdef void store_branches(Sums sums, int branch) noexcept nogil
cdef void store_unknown_test(Sums sums, int[::1] ints) noexcept nogil
cdef void finish_two(Workspace work, double gain, int[::1] ints, double[::1] reals) noexcept nogil
cdef void score_candidate(
    Workspace work, double gain, double information, int[::1] ints, double[::1] reals
) noexcept nogil
cdef (double, int) _chi_square_of_two(Sums sums, double left_weight, double right_weight) noexcept nogil
