cpdef fire(
    const double[:, ::1] values, const unsigned char[::1] coded, const int[::1] start, const int[::1] attribute,
    const double[::1] above, const double[::1] at_most, const int[::1] flags_start, const unsigned char[::1] flags,
    const unsigned char[::1] absent, int[::1] fired
)
