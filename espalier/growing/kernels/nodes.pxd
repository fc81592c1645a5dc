ctypedef fused Number:
    int
    long long
    double


cdef Number[::1] enlarge(Number[::1] old, long long count, long long more) with gil
cdef Number[:, ::1] enlarge_rows(Number[:, ::1] old, long long count, long long more) with gil
cdef Number[:, ::1] enlarge_columns(Number[:, ::1] old, long long count, long long more) with gil
cpdef preorder(const int[::1] first_child, const int[::1] n_children)
