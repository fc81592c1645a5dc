cpdef weakest_links(
    const int[::1] parent, const int[::1] size, const unsigned char[::1] is_leaf, const double[::1] risk, double slack
)
cpdef earliest_above(const int[::1] parent, const long long[::1] step)
