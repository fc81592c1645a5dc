cpdef long long write_codes(const unsigned long long[::1] bits, unsigned int[::1] codes, unsigned int[:, ::1] counts)
cdef (unsigned long long, unsigned long long, unsigned long long, unsigned long long) _span(
    const unsigned long long[::1] bits
) noexcept nogil
cdef long long _bit_length(unsigned long long number) noexcept nogil
cdef void _write_shifted(
    const unsigned long long[::1] bits, unsigned long long zeros, unsigned long long least, unsigned long long below,
    unsigned long long shift, unsigned int[::1] codes, unsigned int[:, ::1] counts
) noexcept nogil
cpdef sort_rows(
    long long n_bits, const unsigned int[::1] codes, unsigned int[:, ::1] counts, unsigned int[::1] order,
    unsigned long long[::1] near, unsigned long long[::1] far
)
cdef void _first_pass(
    const unsigned int[::1] codes, unsigned int[:, ::1] places, unsigned long long[::1] sink
) noexcept nogil
cdef void _next_pass(
    const unsigned long long[::1] source, long long digit, unsigned int[:, ::1] places, unsigned long long[::1] sink
) noexcept nogil
cpdef long long code_column(const double[::1] values, unsigned char[::1] cells, int most)
