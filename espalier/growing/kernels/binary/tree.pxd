from espalier.growing.kernels.arguments cimport GrowParameters
from espalier.growing.kernels.binary.arguments cimport BinaryColumns, BinaryNodes, NodeSearch, Scratch

cdef class Subtree:
    cdef GrowParameters parameters
    cdef BinaryColumns data
    cdef BinaryNodes nodes
    cdef NodeSearch search
    cdef Scratch scratch
    cdef const int[::1] home
    cdef long long few, n_nodes, node, start, stop, slot, depth
    cdef long long[::1] free
    cdef long long n_free
    cdef long long[:, ::1] pending
    cdef unsigned char[:, ::1] pending_constant
    cdef long long n_pending, current


cpdef split_node(
    GrowParameters parameters, BinaryColumns data, BinaryNodes nodes, NodeSearch search, Scratch scratch, long long node,
    long long first_child, long long attribute, long long start, long long stop, long long depth
)
cdef (long long, bint, bint) _divide_node(
    GrowParameters parameters, BinaryColumns data, BinaryNodes nodes, NodeSearch search, Scratch scratch, long long node,
    long long first_child, long long attribute, long long start, long long stop, long long depth
) noexcept nogil
cpdef long long grow_subtree(
    GrowParameters parameters, BinaryColumns data, BinaryNodes nodes, Scratch scratch,
    const unsigned char[::1] is_constant, long long start, long long stop, long long depth
)
cdef Subtree _begin_subtree(
    GrowParameters parameters, BinaryColumns data, BinaryNodes nodes, Scratch scratch,
    const unsigned char[::1] is_constant, long long start, long long stop, long long depth
)
cdef void _grow_pending(Subtree subtree) noexcept nogil
cdef void _take_pending(Subtree subtree) noexcept nogil
cdef void _add_pending(
    Subtree subtree, long long node, long long start, long long stop, long long slot, bint is_open
) noexcept nogil
cdef long long _find_split(Subtree subtree, BinaryColumns data, NodeSearch search) noexcept nogil
cdef (long long, long long) _share_counts(
    Subtree subtree, BinaryColumns data, NodeSearch search, long long middle, bint left_is_open, bint right_is_open
) noexcept nogil
cdef long long _take_slot(Subtree subtree) noexcept nogil
cdef long long _release_slot(Subtree subtree, long long slot) noexcept nogil
cdef BinaryColumns _copy_subset(
    BinaryColumns data, Scratch scratch, int[::1] home, const unsigned char[::1] is_constant, long long start, long long stop
)
cdef take(values, home)
