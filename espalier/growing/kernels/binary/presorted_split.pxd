from espalier.growing.kernels.binary.arguments cimport BinaryColumns, NodeSearch

cdef double SURE

cpdef long long best_split_presorted(
    BinaryColumns data, NodeSearch search, long long column, long long start, long long stop, double floor
) noexcept nogil
cdef void _begin_scan(NodeSearch search, double floor) noexcept nogil
cdef void _scan(BinaryColumns data, NodeSearch search, long long column, long long start, long long stop) noexcept nogil
cdef bint _take_split(
    BinaryColumns data, NodeSearch search, long long column, long long start, long long stop, long long n_left,
    double numerator, double denominator
) noexcept nogil
cdef double _least_room(long long n_left, long long stop, long long n_rows) noexcept nogil
cdef void _scan_two_classes(
    BinaryColumns data, NodeSearch search, long long column, long long start, long long stop
) noexcept nogil
cdef void _scan_classes(
    BinaryColumns data, NodeSearch search, long long column, long long start, long long stop
) noexcept nogil
cdef void _scan_numbers(
    BinaryColumns data, NodeSearch search, long long column, long long start, long long stop
) noexcept nogil
cdef void _scan_weighted_pair(
    BinaryColumns data, NodeSearch search, long long column, long long start, long long stop
) noexcept nogil
cdef double size_of_pair(NodeSearch search, double weight, double second) noexcept nogil
cdef double size_of_classes(NodeSearch search, double weight) noexcept nogil
cdef bint are_heavy_enough(NodeSearch search, double left_size) noexcept nogil
cdef void _scan_weighted_classes(
    BinaryColumns data, NodeSearch search, long long column, long long start, long long stop
) noexcept nogil
