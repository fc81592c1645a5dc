from espalier.prediction.kernels.apply cimport PackedTree


cdef class RowsAtLeaves:
    cdef public int[::1] order
    cdef public int[::1] size
    cdef public long long[::1] lo
    cdef public int[::1] row
    cdef public double[::1] weight
    cdef public int place
    cdef public RowsAtLeaves outer


cdef class Distribution:
    # What is distributed, and where the sums are written.
    cdef public PackedTree tree
    cdef public int[::1] shape
    cdef public const double[::1] values
    cdef public long long row_step
    cdef public const double[::1] target
    cdef public int n_classes
    cdef public const double[::1] answers
    cdef public int renew
    cdef public double[:, ::1] sums
    cdef public unsigned char[::1] divides
    # The visited nodes, their parents' places, and where their row parts begin.
    cdef int n_order
    cdef int[::1] order
    cdef int[::1] up
    cdef int[::1] size
    cdef long long[::1] lo
    # The buffer, and the row parts of one node with their branches.
    cdef int[::1] row
    cdef double[::1] weight
    cdef int[::1] own_row
    cdef double[::1] own_weight
    cdef int[::1] branch
    # Per branch of a test: the number of its parts, later the index of its next part; the weight for its share.
    cdef long long[::1] count
    cdef double[::1] known
    # Nodes to visit, with the number of their row parts and their parents' places.
    cdef int[::1] pending
    cdef long long[::1] n_pending_parts
    cdef int[::1] pending_up


cpdef RowsAtLeaves distribute(
    Distribution state, const int[::1] rows, const double[::1] weights, double[::1] shares, bint marks_parts
)
cdef int distribute_rows(
    Distribution state, int start, const int[::1] rows, const double[::1] weights, long long n_rows,
    double[::1] shares, const double[::1] known_before, bint marks_parts
) except -1 nogil
cdef RowsAtLeaves rows_at_leaves(Distribution state)
cdef long long make_room(Distribution state, long long n_arrived, long long first, long long lacking) except -1 with gil
cdef long long choose_branches(Distribution state, int split, long long first, long long n_parts) noexcept nogil
cdef void renew_shares(Distribution state, double[::1] shares, int base, int n_branches) noexcept nogil
cdef void partition_parts(
    Distribution state, long long n_parts, double[::1] shares, int base, int n_branches, bint marks_parts
) noexcept nogil
cdef void add_classes(Distribution state, long long first, long long n_parts, int node) noexcept nogil
cdef void add_powers(Distribution state, long long first, long long n_parts, int node) noexcept nogil
cdef int leaf_of_row(Distribution state, int node, int row) noexcept nogil
