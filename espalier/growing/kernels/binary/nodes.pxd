from espalier.growing.kernels.arguments cimport GrowParameters
from espalier.growing.kernels.binary.arguments cimport BinaryColumns, BinaryNodes, NodeSearch

cdef double NAN, INFINITY, LOST

cpdef bint sum_root(GrowParameters parameters, BinaryColumns data, BinaryNodes nodes)
cdef bint sum_node(
    GrowParameters parameters, BinaryColumns data, BinaryNodes nodes, long long node, long long start, long long stop,
    long long depth
) noexcept nogil
cdef bint _sum_numbers(
    BinaryColumns data, BinaryNodes nodes, long long node, long long start, long long stop
) noexcept nogil
cdef void _count_classes(
    BinaryColumns data, BinaryNodes nodes, long long node, long long start, long long stop
) noexcept nogil
cpdef void begin_search(
    GrowParameters parameters, BinaryColumns data, BinaryNodes nodes, long long node, NodeSearch search
) noexcept nogil
cdef double _rounded(double mean, double spread) noexcept nogil
cpdef best_splits(
    BinaryColumns data, NodeSearch search, long long start, long long stop, long long low, long long high,
    long long coded_low, long long coded_high
)
cdef void best_sorted_splits(
    BinaryColumns data, NodeSearch search, long long start, long long stop, long long low, long long high
) noexcept nogil
cdef void best_coded_splits(
    BinaryColumns data, NodeSearch search, long long slot, long long start, long long stop, long long low,
    long long high, bint is_counted
) noexcept nogil
cdef void _write_split(NodeSearch search, long long column, long long attribute, long long place) noexcept nogil
cpdef long long best_attribute(GrowParameters parameters, NodeSearch search) noexcept nogil
