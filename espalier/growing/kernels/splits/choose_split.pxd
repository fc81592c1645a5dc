from espalier.growing.kernels.arguments cimport Workspace
from espalier.growing.kernels.growth cimport Candidates, NodeTables, RowSequences

cdef double GUARD_SLACK


cdef int choose_split(
    Workspace work, NodeTables nodes, RowSequences rows, Candidates candidates, int node, long long start,
    long long stop, const double[::1] progress
) noexcept nogil
cdef void set_context(
    Workspace work, NodeTables nodes, RowSequences rows, int node, long long start, long long stop
) noexcept nogil
cdef bint find_candidates(
    Workspace work, NodeTables nodes, RowSequences rows, Candidates candidates, int node, const double[::1] progress
) noexcept nogil
cpdef int best_candidate(Workspace work, Candidates candidates) noexcept nogil
cdef bint must_stop(Workspace work, NodeTables nodes, int node) noexcept nogil
cdef double _impurity_of_node(Workspace work, const int[::1] master, long long start, long long stop) noexcept nogil
cdef bint is_paid(NodeTables nodes, int node, int attribute) noexcept nogil
