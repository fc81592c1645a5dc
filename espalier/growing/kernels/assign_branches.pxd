from espalier.growing.kernels.arguments cimport Workspace
from espalier.growing.kernels.growth cimport Branches, Candidates, NodeTables, RowSequences


cdef void assign_branches(
    Workspace work, RowSequences rows, Branches branches, Candidates candidates, int chosen, long long start,
    long long stop
) noexcept nogil
cdef void find_subset_again(
    Workspace work, RowSequences rows, Branches branches, Candidates candidates, int chosen
) noexcept nogil
cdef void write_codes(
    Workspace work, NodeTables nodes, Branches branches, Candidates candidates, int chosen
) noexcept nogil
cdef double _threshold_of(Workspace work, int chosen, const int[::1] ints) noexcept nogil
cdef int write_test(Workspace work, NodeTables nodes, int node, int chosen, Candidates candidates) noexcept nogil
cdef void weigh_branches(RowSequences rows, Branches branches, long long start, long long stop) noexcept nogil
cdef int weigh_row_by_row(
    Workspace work, const int[::1] sequence, Branches branches, double[:, ::1] branch_sums, bint is_threshold,
    long long start, long long stop
) noexcept nogil
cdef void reset_categories(
    Workspace work, RowSequences rows, Branches branches, int chosen, long long start, long long stop
) noexcept nogil
cdef void set_fallback(Branches branches, int learned) noexcept nogil
cdef int heaviest(const double[:] weights) noexcept nogil
cdef void assign_unknown(RowSequences rows, Branches branches, long long start, long long stop) noexcept nogil
