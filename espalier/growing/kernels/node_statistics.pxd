from espalier.growing.kernels.arguments cimport Targets, Workspace
from espalier.growing.kernels.growth cimport Branches, NodeTables, RowSequences


cdef double ROUNDING
cdef void start_root(Workspace work, NodeTables nodes, RowSequences rows, int depth) noexcept nogil
cdef void start_children(
    Workspace work, NodeTables nodes, RowSequences rows, Branches branches, int node, int paid_link, long long start,
    long long stop
) noexcept nogil
cdef void _add_rows(
    Targets targets, NodeTables nodes, RowSequences rows, Branches branches, bint is_regression, bint has_means,
    long long start, long long stop
) noexcept nogil
cdef void undo_split(NodeTables nodes, int node) noexcept nogil
cdef void set_medians(
    Workspace work, NodeTables nodes, RowSequences rows, Branches branches, int first_child, long long start,
    long long stop
) noexcept nogil
cdef void set_median(
    Workspace work, NodeTables nodes, int node, const int[::1] rows, long long start, long long stop,
    long long extra_start, long long extra_stop, double share
) noexcept nogil
cdef void _start_node(NodeTables nodes, int node, int parent, int depth, int paid_link) noexcept nogil
cdef void _add_row(
    NodeTables nodes, Targets targets, bint is_regression, int node, int row, double weight
) noexcept nogil
cdef void _add_square(NodeTables nodes, Targets targets, int node, int row, double weight) noexcept nogil
cdef void _finish_means(NodeTables nodes, int first, int count) noexcept nogil
cdef double _inside(NodeTables nodes, int node, double mean) noexcept nogil
cdef void _correct_means(NodeTables nodes, int first, int count) noexcept nogil
cdef void _finish_values(NodeTables nodes, int n_classes, int first, int count, double value_of_parent) noexcept nogil
cdef long long _rank_reaching(const double[::1] weight_tree, double bound) noexcept nogil
