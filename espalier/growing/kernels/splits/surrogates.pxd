from espalier.growing.kernels.arguments cimport Workspace
from espalier.growing.kernels.growth cimport Branches, RowSequences, SurrogateTables

cdef double NOISE, MIN_SIZE


cdef int add_surrogates(
    Workspace work, RowSequences rows, Branches branches, SurrogateTables surrogates, int split_attribute,
    long long start, long long stop
) except -1 nogil
cdef int _branch_of_larger_mean(
    Workspace work, RowSequences rows, Branches branches, long long start, long long stop
) noexcept nogil
cdef int _find_surrogates(
    Workspace work, RowSequences rows, Branches branches, SurrogateTables surrogates, int upper_branch,
    int split_attribute, long long start, long long stop
) noexcept nogil
cdef void _insert(
    SurrogateTables surrogates, int n_found, int attribute, int kind, int below, double threshold, double adjusted
) noexcept nogil
cdef (double, double, int) _threshold_agreement(
    Workspace work, const int[::1] sequence, const int[::1] branch_of_row, int attribute, long long start,
    long long stop
) noexcept nogil
cdef double _nominal_agreement(
    Workspace work, RowSequences rows, Branches branches, SurrogateTables surrogates, int upper_branch, int attribute,
    long long start, long long stop
) noexcept nogil
cdef double _size_of_row(Workspace work, int row) noexcept nogil
cdef int _surrogate_branch(Workspace work, SurrogateTables surrogates, long long i, int row) noexcept nogil
cdef long long _copy_found(Workspace work, SurrogateTables surrogates, int n_found) noexcept nogil
cdef void _write_codes(
    Workspace work, RowSequences rows, Branches branches, SurrogateTables surrogates, int upper_branch,
    long long first, long long start, long long stop
) noexcept nogil
