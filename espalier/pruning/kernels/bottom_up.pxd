cpdef reduce_errors(
    const int[::1] parent, const unsigned char[::1] is_leaf, const double[:] loss, bint ties_prune, bint prune_root,
    bint from_initial, double slack
)
cpdef prune_greedily(
    const int[::1] parent, const int[::1] size, const unsigned char[::1] is_leaf, const double[:] loss,
    bint ties_prune, bint prune_root, bint from_initial, double slack
)
