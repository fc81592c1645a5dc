from espalier.growing.kernels.binary.arguments cimport BinaryColumns, NodeSearch

cdef unsigned char[32] PLACE_OF_BIT

cdef long long best_split_histogram(
    BinaryColumns data, NodeSearch search, long long slot, long long first, long long n_codes
) noexcept nogil
cdef long long _last_code(
    BinaryColumns data, NodeSearch search, long long slot, long long first, long long n_codes
) noexcept nogil
cdef bint _has_one_value(
    BinaryColumns data, NodeSearch search, long long slot, long long first, long long n_codes
) noexcept nogil
cdef void count_rows(
    BinaryColumns data, NodeSearch search, long long slot, long long start, long long stop, long long low,
    long long high
) noexcept nogil
cdef (long long, double) _class_and_weight(BinaryColumns data, unsigned int entry) noexcept nogil
cdef long long best_split_few_rows(
    BinaryColumns data, NodeSearch search, long long slot, long long column, long long start, long long stop
) noexcept nogil
