from espalier.pruning.kernels.distribute cimport Distribution, RowsAtLeaves
from espalier.prediction.kernels.apply cimport PackedTree

cdef double SLACK
cdef double EQUALLY_HEAVY
cdef double ABOVE_ROUNDING
cdef int FIRST_ESTIMATE


cdef class ErrorLimit:
    cdef public double confidence
    cdef public double z
    cdef public int quantile


cdef class PruningState:
    cdef public Distribution distribution
    cdef public ErrorLimit limit
    cdef public bint knows_all
    # The tree as pruned so far, with statistics of each node.
    cdef public double[::1] shares
    cdef public double[:, ::1] stats
    cdef double[::1] mass
    cdef double[::1] estimate
    cdef double[:, ::1] whole
    cdef double[::1] whole_estimate
    # The replaced nodes.
    cdef int n_steps
    cdef int[:, ::1] steps
    cdef double[:, ::1] figures
    # Scratch to estimate the errors of a branch with all rows of its node.
    cdef double[:, ::1] extra
    cdef unsigned char[::1] is_touched
    cdef int n_touched
    cdef int[::1] touched
    cdef double[::1] both
    cdef double[::1] weight_of_row
    cdef long long n_listed
    cdef int[::1] listed
    cdef double[::1] arriving
    cdef double[::1] trial_shares
    cdef double[::1] known


cpdef prune_to_leaves(
    PackedTree tree, int[::1] shape, const double[::1] weight, const double[::1] errors, ErrorLimit limit,
    const double[::1] stop
)
cpdef prune_with_raising(PruningState state, RowsAtLeaves frame, const double[::1] stop)
cdef void start(PruningState state, RowsAtLeaves frame) noexcept nogil
cdef bint visit_nodes(PruningState state, RowsAtLeaves frame, const double[::1] stop) except -1 nogil
cdef void replace_node(PruningState state, int node, int branch, double below, double as_leaf, double as_branch) noexcept nogil
cdef (double, double, int, int) sum_branches(PruningState state, RowsAtLeaves frame, int place) noexcept nogil
cdef double estimated_errors(const double *stats, long long n_classes, ErrorLimit limit) noexcept nogil
cdef double errors_of_branch(
    PruningState state, RowsAtLeaves frame, int place, int largest_at, double highest
) except? -1 nogil
cdef double errors_with_extra(PruningState state, int largest) noexcept nogil
cdef double errors_with_parts(PruningState state, RowsAtLeaves frame, int place, int largest_at) except? -1 nogil
cdef void list_rows(PruningState state, RowsAtLeaves frame, int place, bint only_parts) noexcept nogil
cdef RowsAtLeaves redistribute(PruningState state, RowsAtLeaves frame)
cdef void write_figures(PruningState state) noexcept nogil
cdef void mark_parts(PruningState state, RowsAtLeaves frame, RowsAtLeaves branch) noexcept nogil
