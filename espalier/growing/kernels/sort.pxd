cdef double LARGEST_SMALL

cpdef long long write_codes(const unsigned long long[::1] bits, unsigned int[::1] codes, unsigned int[:, ::1] counts)
cdef (unsigned long long, unsigned long long, unsigned long long, unsigned long long) _span(
    const unsigned long long[::1] bits
) noexcept nogil
cdef long long _bit_length(unsigned long long number) noexcept nogil
cdef void _write_shifted(
    const unsigned long long[::1] bits, unsigned long long zeros, unsigned long long least, unsigned long long below,
    unsigned long long shift, unsigned int[::1] codes, unsigned int[:, ::1] counts
) noexcept nogil
cpdef bint sort_packed(
    const double[::1] values, long long n_bits, const unsigned char[::1] row_class, unsigned int row_bits,
    unsigned int[::1] codes, unsigned int[:, ::1] counts, unsigned int[::1] order, unsigned long long[::1] near,
    unsigned long long[::1] far
)
cdef void _first_pass(
    const unsigned int[::1] codes, const unsigned char[::1] row_class, unsigned int row_bits, unsigned int[:, ::1] places,
    unsigned long long[::1] sink
) noexcept nogil
cdef void _next_pass(
    const unsigned long long[::1] source, long long digit, unsigned int[:, ::1] places, unsigned long long[::1] sink
) noexcept nogil
cdef bint _finish_sort(
    const double[::1] values, long long n_bits, unsigned int row_bits, unsigned int[::1] codes,
    unsigned int[::1] order, unsigned long long[::1] packed
) noexcept nogil
cdef long long _row_of(unsigned long long packed, unsigned int row_bits) noexcept nogil
cdef bint _sort_equal_codes(
    const double[::1] values, unsigned int row_bits, unsigned long long[::1] packed
) noexcept nogil
cdef void _write_ranks(
    const double[::1] values, unsigned int row_bits, const unsigned long long[::1] packed, unsigned int[::1] codes
) noexcept nogil
cpdef long long code_column(
    const double[::1] values, unsigned char[::1] cells, double[::1] distinct, long long most
)
cdef long long _number_values(
    const double[::1] values, const unsigned long long[::1] bits, unsigned char[::1] cells, int[::1] slots,
    double[::1] found
) noexcept nogil
cdef long long _code_small_numbers(const double[::1] values, unsigned char[::1] cells, double[::1] distinct)
cpdef number_rows(const unsigned char[::1] row_class, unsigned int row_bits, unsigned int[::1] order)
cpdef spread_cells(
    const unsigned char[:, ::1] column_cells, unsigned char[:, ::1] cells, long long start, long long stop
)
cpdef long long sort_codes(const int[::1] codes, long long n_codes, int[::1] order)
