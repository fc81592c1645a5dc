from espalier.growing.kernels.arguments cimport EncodedColumns, GrowParameters, Sums, Targets, Workspace

cdef int ABOVE_ALL
cdef double GAP
cdef double UNSURE

cdef void best_numeric_split(
    GrowParameters parameters, EncodedColumns columns, Targets targets, Workspace work, const int[::1] sequence,
    int attribute, bint paid, int[::1] ints, double[::1] reals
) noexcept nogil
cdef long long _end_of_known(
    EncodedColumns columns, int attribute, const int[::1] sequence, long long start, long long stop
) noexcept nogil
cdef void _split_known(
    GrowParameters parameters, Targets targets, Workspace work, const int[::1] sequence, long long end
) noexcept nogil
cdef void _sum_rows(
    GrowParameters parameters, Targets targets, Workspace work, const int[::1] sequence, long long first,
    long long last, double *stats
) noexcept nogil
cdef void _set_gain_form(
    GrowParameters parameters, Targets targets, Workspace work, const int[::1] sequence, long long end
) noexcept nogil
cdef (long long, long long) _try_thresholds(
    GrowParameters parameters, EncodedColumns columns, Targets targets, Workspace work, const int[::1] sequence,
    long long end, int[::1] ints
) noexcept nogil
cpdef bint is_apart(EncodedColumns columns, long long first_value, int below, int above) noexcept nogil
cpdef double max_gain_of_split(
    GrowParameters parameters, Sums sums, double known_weight, double left_weight
) noexcept nogil
cdef double _root_terms(
    GrowParameters parameters, Workspace work, long long n_left, long long n_right, double left_weight, int branch
) noexcept nogil
cdef double _left_size(GrowParameters parameters, const double[::1] left, double left_weight) noexcept nogil
cdef bint _changes_target(
    GrowParameters parameters, EncodedColumns columns, Targets targets, Workspace work, const int[::1] sequence,
    long long at, long long end
) noexcept nogil
cdef bint _same_target(GrowParameters parameters, Targets targets, int row, int other) noexcept nogil
cdef long long _middle_place(
    GrowParameters parameters, EncodedColumns columns, Targets targets, Workspace work, const int[::1] sequence,
    long long n_known, double lightest, double heaviest
) noexcept nogil
cdef int _try_unknown_test(
    GrowParameters parameters, Targets targets, Workspace work, const int[::1] sequence, long long end, int[::1] ints
) noexcept nogil
cdef double _gain_with_share(
    GrowParameters parameters, Targets targets, Workspace work, const int[::1] sequence, long long middle, long long end
) noexcept nogil
