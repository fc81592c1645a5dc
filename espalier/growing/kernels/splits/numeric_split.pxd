from espalier.growing.kernels.arguments cimport EncodedColumns, Workspace

cdef int ABOVE_ALL
cdef double NEIGHBOUR_GAP, UNSURE

cdef void best_numeric_split(
    Workspace work, const int[::1] sequence, int attribute, bint paid, int[::1] ints, double[::1] reals
) noexcept nogil
cdef long long _end_of_known(Workspace work, int attribute, const int[::1] sequence) noexcept nogil
cdef void _split_known(Workspace work, const int[::1] sequence, long long end) noexcept nogil
cdef void _sum_rows(
    Workspace work, const int[::1] sequence, long long first, long long last, double *stats
) noexcept nogil
cdef void _set_gain_form(Workspace work, const int[::1] sequence, long long end) noexcept nogil
cdef (long long, long long) _try_thresholds(
    Workspace work, const int[::1] sequence, long long end, int[::1] ints
) noexcept nogil
cdef bint is_apart(EncodedColumns columns, long long first_value, int below, int above) noexcept nogil
cpdef double max_gain_of_split(Workspace work, double left_weight) noexcept nogil
cdef bint _changes_target(Workspace work, const int[::1] sequence, long long at, long long end) noexcept nogil
cdef bint _same_target(Workspace work, int row, int other) noexcept nogil
cdef long long _middle_place(
    Workspace work, const int[::1] sequence, long long n_known, double lightest, double heaviest
) noexcept nogil
cdef int _try_unknown_test(Workspace work, const int[::1] sequence, long long end, int[::1] ints) noexcept nogil
cdef double _gain_with_share(Workspace work, const int[::1] sequence, long long middle, long long end) noexcept nogil
