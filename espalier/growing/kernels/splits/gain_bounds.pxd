from espalier.growing.kernels.arguments cimport EncodedColumns, GrowParameters, SplitSearch, Sums, Targets

cdef int MAX_CORNER_CLASSES
cdef int SMALL
cdef int LARGE

cdef double UNSURE
cdef double GAP
cdef double LN_2

cdef bint has_bound(GrowParameters parameters) noexcept nogil
cdef int block_of(GrowParameters parameters, long long n_known) noexcept nogil
cdef double advance_block(
    Targets targets, Sums sums, const int[::1] sequence, long long first, long long last, double left_weight
) noexcept nogil
cdef double _advance_two_classes(
    Sums sums, const int[::1] sequence, long long first, long long last, double left_weight
) noexcept nogil
cpdef double max_gain_in_block(
    GrowParameters parameters, Sums sums, double known_weight, double left_weight, double ahead_weight
) noexcept nogil
cpdef double max_gain_of_split(
    GrowParameters parameters, Sums sums, double known_weight, double left_weight
) noexcept nogil
cdef double _bound(GrowParameters parameters, double known_weight, double apart, double room) noexcept nogil
cdef bint can_win(GrowParameters parameters, Sums sums, SplitSearch search) noexcept nogil
cpdef long long count_splits(
    GrowParameters parameters, EncodedColumns columns, int attribute, const int[::1] sequence, long long first,
    long long last
) noexcept nogil
cdef bint is_apart(EncodedColumns columns, long long first_value, int below, int above) noexcept nogil
