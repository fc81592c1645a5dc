ctypedef fused Array:
    int[::1]
    double[::1]
    long long[::1]
    int[:, ::1]
    double[:, ::1]
    long long[:, ::1]


cdef Array enlarge(Array old, long long count, long long more) with gil
cdef int[:, ::1] enlarge_columns(int[:, ::1] old, long long count, long long more) with gil
cpdef preorder(const int[::1] first_child, const int[::1] n_children)
