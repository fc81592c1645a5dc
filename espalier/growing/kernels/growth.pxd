from espalier.growing.kernels.arguments cimport Workspace


cdef class Tables:
    cdef public int[:, ::1] ints
    cdef public double[:, ::1] reals
    cdef public int[::1] codes
    cdef public long long n, n_codes
    cdef int reserve(self, long long n_items) except -1 nogil
    cdef int reserve_codes(self, long long n_codes) except -1 nogil


cdef class NodeTables(Tables):
    cdef public double[:, ::1] stats
    cdef int reserve(self, long long n_nodes) except -1 nogil


cdef class SurrogateTables(Tables):
    cdef public int[:, ::1] found_ints
    cdef public double[:, ::1] found_reals
    cdef public int[::1] branch_of_code
    cdef public double[::1] left_of_code, right_of_code, size_of_code


cdef class RowSequences:
    cdef public int[::1] master
    cdef public double[::1] weight
    cdef public int[:, ::1] orders
    cdef public int[::1] spare
    cdef public double[::1] spare_weight
    cdef public long long top
    cdef int reserve(self, long long n_rows, long long n_moved) except -1 nogil


cdef class Branches:
    cdef public int n, fallback
    cdef public int[::1] of_row, of_code
    cdef public double[::1] weight
    cdef public long long[::1] n_rows, at
    cdef public double known_weight, unknown_weight
    cdef public long long n_unknown


cdef class Candidates:
    cdef public int[:, ::1] ints
    cdef public double[:, ::1] reals
    cdef public int[::1] chosen_ints
    cdef public double[::1] chosen_reals


cdef class PendingNodes:
    cdef public long long[::1] node, start, stop, valid_start, valid_stop
    cdef public long long n
    cdef public int[::1] attribute
    cdef public int[:, ::1] ints
    cdef public double[:, ::1] reals
    cdef public long long[::1] heap
    cdef public long long n_heap
    cdef int reserve(self, long long n_nodes) except -1 nogil


cdef class Growth:
    cdef public Workspace work
    cdef public double[::1] progress
    cdef public NodeTables nodes
    cdef public SurrogateTables surrogates
    cdef public RowSequences rows
    cdef public Branches branches
    cdef public Candidates candidates
    cdef public PendingNodes pending
    cdef public RowSequences validation
    cdef public bint validates
    cdef public long long[:, ::1] delegated
    cdef public long long n_delegated, n_leaves
    cdef public double finished
    cdef public int status
