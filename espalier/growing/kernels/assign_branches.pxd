from espalier.growing.kernels.arguments cimport CutPoints, EncodedColumns, GrowParameters, Sums, Targets, Workspace
from espalier.growing.kernels.growth cimport Branches, Candidates, NodeTables, RowSequences


cdef void assign_branches(
    GrowParameters parameters, EncodedColumns columns, RowSequences rows, Branches branches, Candidates candidates,
    int chosen, long long start, long long stop
) noexcept nogil
cdef void find_subset_again(
    GrowParameters parameters, EncodedColumns columns, Targets targets, Workspace work, RowSequences rows,
    Branches branches, Candidates candidates, int chosen
) noexcept nogil
cdef void write_codes(
    GrowParameters parameters, EncodedColumns columns, NodeTables nodes, Branches branches, Candidates candidates,
    int chosen
) noexcept nogil
cdef double _threshold_of(
    GrowParameters parameters, EncodedColumns columns, CutPoints cut_points, int chosen, const int[::1] ints
) noexcept nogil
cdef int write_test(
    GrowParameters parameters, EncodedColumns columns, CutPoints cut_points, NodeTables nodes, int node, int chosen,
    Candidates candidates
) noexcept nogil
cdef void weigh_branches(RowSequences rows, Branches branches, long long start, long long stop) noexcept nogil
cdef int weigh_row_by_row(
    GrowParameters parameters, Targets targets, Sums sums, const int[::1] sequence, Branches branches,
    double[:, ::1] branch_sums, bint is_threshold, long long start, long long stop
) noexcept nogil
cdef void reset_categories(
    EncodedColumns columns, RowSequences rows, Branches branches, int chosen, long long start, long long stop
) noexcept nogil
cdef void set_fallback(Branches branches, int learned) noexcept nogil
cdef int heaviest_child(NodeTables nodes, int first_child, int n_branches) noexcept nogil
cdef void assign_unknown(RowSequences rows, Branches branches, long long start, long long stop) noexcept nogil
