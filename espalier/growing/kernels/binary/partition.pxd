from espalier.growing.kernels.binary.arguments cimport BinaryColumns, BinaryNodes, NodeSearch, Scratch

cdef void _put_left(Scratch scratch, unsigned int row) noexcept nogil
cdef void _put_right(Scratch scratch, unsigned int row) noexcept nogil
cdef unsigned int _is_right(Scratch scratch, unsigned int row) noexcept nogil
cdef void mark_sorted(
    BinaryColumns data, Scratch scratch, long long column, long long start, long long middle, long long stop
) noexcept nogil
cdef long long mark_coded(
    BinaryColumns data, BinaryNodes nodes, Scratch scratch, long long node, long long column, long long start,
    long long stop, long long code
) noexcept nogil
cpdef partition_columns(
    BinaryColumns data, NodeSearch search, Scratch scratch, long long low, long long high, long long divided,
    long long start, long long stop, bint left_is_open, bint right_is_open
)
cdef void partition_orders(
    BinaryColumns data, NodeSearch search, Scratch scratch, long long low, long long high, long long divided,
    long long start, long long stop, bint left_is_open, bint right_is_open
) noexcept nogil
cdef void partition_order(
    BinaryColumns data, Scratch scratch, long long column, long long start, long long stop, bint left_is_open,
    bint right_is_open
) noexcept nogil
