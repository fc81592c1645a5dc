ctypedef fused Number:
    int
    long long
    double


cdef Number[::1] enlarge(Number[::1] old, long long count, long long more) with gil
cdef Number[:, ::1] enlarge_rows(Number[:, ::1] old, long long count, long long more) with gil
cdef Number[:, ::1] enlarge_columns(Number[:, ::1] old, long long count, long long more) with gil
cdef double middle_of(double below, double above) noexcept nogil
cpdef are_futile(const int[::1] first_child, const int[::1] n_children, const double[:, ::1] stats)
cpdef preorder(const int[::1] first_child, const int[::1] n_children)
cpdef write_thresholds(
    const double[::1] below, const double[::1] above, const long long[::1] nodes, double[::1] threshold
)
