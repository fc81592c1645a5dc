# Cells are float32 or float64.
ctypedef fused Cell:
    float
    double


cdef class PackedTree:
    cdef public const double[::1] thresholds
    cdef public const int[::1] links
    cdef public const int[::1] node
    cdef public const signed char[::1] test
    cdef public const int[::1] feature
    cdef public const double[::1] threshold
    cdef public const int[::1] child_start
    cdef public const int[::1] child
    cdef public const double[::1] share
    cdef public const int[::1] code_start
    cdef public const int[::1] code_branch
    cdef public const int[::1] fallback
    cdef public const int[::1] other_start
    cdef public const int[::1] other_feature
    cdef public const signed char[::1] other_test
    cdef public const double[::1] other_threshold
    cdef public const int[::1] other_below
    cdef public const int[::1] other_code_start
    cdef public const int[::1] other_code_branch


cdef int code_branch(const int[::1] start, const int[::1] branches, int test, double value) noexcept nogil
cdef int own_branch(PackedTree tree, int node, double value) noexcept nogil
cdef int other_branch(PackedTree tree, int node, const Cell[::1] values, long long first) noexcept nogil
cdef int branch_of(PackedTree tree, int node, const Cell[::1] values, long long first) noexcept nogil
cdef bint apply_interleaved(
    const double *thresholds, const int *links, const Cell *values, long long row_step, unsigned int *at
) noexcept nogil
cdef void apply_rows(
    PackedTree tree, const Cell[::1] values, long long row_step, long long low, long long high, int[::1] leaves
) noexcept nogil
cpdef apply(
    PackedTree tree, bint is_all_numeric, const Cell[::1] values, long long row_step, long long n_rows, int[::1] leaves
)
cpdef average_leaves(
    PackedTree tree, const double[:, ::1] answers, const Cell[::1] values, long long row_step, const long long[::1] rows,
    int[::1] node, double[::1] share, double[:, ::1] mixed
)
cpdef max_open(const int[::1] parent, const int[::1] child_start)
