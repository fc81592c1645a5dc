from espalier.growing.kernels.growth cimport Branches, Candidates, NodeTables, PendingNodes

cdef double ROUNDING


cdef void add_pending(PendingNodes pending, Branches branches, int first_child, long long base) noexcept nogil
cdef void store_split(PendingNodes pending, long long entry, Candidates candidates, int attribute) noexcept nogil
cdef void load_split(PendingNodes pending, long long entry, Candidates candidates) noexcept nogil
cdef void push(PendingNodes pending, NodeTables nodes, long long entry) noexcept nogil
cdef long long pop(PendingNodes pending, NodeTables nodes) noexcept nogil
cdef double _priority(PendingNodes pending, NodeTables nodes, long long entry) noexcept nogil
cdef bint _comes_first(PendingNodes pending, NodeTables nodes, long long left, long long right) noexcept nogil
