from espalier.growing.kernels.arguments cimport EncodedColumns, GrowParameters, Targets
from espalier.growing.kernels.growth cimport Branches, RowSequences, SurrogateTables

cdef double NOISE
cdef double MIN_SIZE


cdef int add_surrogates(
    GrowParameters parameters, EncodedColumns columns, Targets targets, double centre, const double[::1] weight,
    RowSequences rows, Branches branches, SurrogateTables surrogates, int split_attribute, long long start, long long stop
) except -1 nogil
cdef int _branch_of_larger_mean(
    GrowParameters parameters, Targets targets, double centre, const double[::1] weight, RowSequences rows,
    Branches branches,    long long start, long long stop
) noexcept nogil
cdef int _find_surrogates(
    GrowParameters parameters, EncodedColumns columns, Targets targets, const double[::1] weight, RowSequences rows, Branches branches, SurrogateTables surrogates,
    int upper_branch, int split_attribute, long long start, long long stop
) noexcept nogil
cdef void _insert(
    SurrogateTables surrogates, int n_found, int attribute, int kind, int below, double threshold, double adjusted
) noexcept nogil
cdef (double, double, int) _threshold_agreement(
    GrowParameters parameters, EncodedColumns columns, Targets targets, const double[::1] weight, const int[::1] sequence, const int[::1] branch_of_row,
    int attribute, long long start, long long stop
) noexcept nogil
cdef double _nominal_agreement(
    GrowParameters parameters, EncodedColumns columns, Targets targets, const double[::1] weight, RowSequences rows, Branches branches, SurrogateTables surrogates,
    int upper_branch, int attribute, long long start, long long stop
) noexcept nogil
cdef double _size_of_row(
    GrowParameters parameters, Targets targets, const double[::1] weight, int row
) noexcept nogil
cdef int _surrogate_branch(EncodedColumns columns, SurrogateTables surrogates, long long i, int row) noexcept nogil
cdef long long _copy_found(EncodedColumns columns, SurrogateTables surrogates, int n_found) noexcept nogil
cdef void _write_codes(
    GrowParameters parameters, EncodedColumns columns, Targets targets, const double[::1] weight, RowSequences rows, Branches branches, SurrogateTables surrogates,
    int upper_branch, long long first, long long start, long long stop
) noexcept nogil
