cdef double COLLINEAR, TIE, LEAST_GAIN, LARGEST, LARGEST_CELL, RIDGE, ILL_CONDITIONED, EXACT
cdef int BLOCK


cdef class LinearFit:
    cdef const int[::1] feature, cut
    cdef const double[:, ::1] values
    cdef const double[::1] target, weight
    cdef const double[:, ::1] node_stats
    # The rows and statistics of the node, and the regressors that are tested in its subtree.
    cdef long long first, last
    cdef double mass, target_mean, deviations
    cdef double[::1] heaviest
    cdef int[::1] listed
    cdef int n_listed
    # The listed regressors that vary.
    cdef int[::1] active
    cdef int n_active
    cdef double[::1] mean, deviation, moment
    cdef double[:, ::1] gram, factor, block
    # The regressors that are still in the model, as indexes into `active`.
    cdef int[::1] kept
    cdef int n_kept
    cdef double[::1] beta, trial, step, residual


cpdef fit_nodes(
    LinearFit fit, const int[::1] size, const long long[::1] first_row, const int[::1] tested, double[::1] state
)
cdef int list_regressors(LinearFit fit, int node, int size, const int[::1] tested) except -1 nogil
cdef int keep_heaviest(LinearFit fit) except -1 with gil
cdef double cell(LinearFit fit, int regressor, long long row) noexcept nogil
cdef void standardise(LinearFit fit) noexcept nogil
cdef void sum_products(LinearFit fit) noexcept nogil
cdef double fit_and_drop(LinearFit fit) noexcept nogil
cdef int largest_of(const double[::1] beta, int n_kept) noexcept nogil
cdef int smallest_of(const double[::1] beta, int n_kept) noexcept nogil
cdef void factorise(LinearFit fit) noexcept nogil
cdef double solve(LinearFit fit, double[::1] beta) noexcept nogil
cdef void write_residuals(LinearFit fit, const double[::1] beta) noexcept nogil
cdef void back_substitute(LinearFit fit, double[::1] right) noexcept nogil
cdef void drop(LinearFit fit, int dropped) noexcept nogil
