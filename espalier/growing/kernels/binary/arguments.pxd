from espalier.growing.kernels.arguments cimport Arguments


cdef class BinaryColumns(Arguments):
    cdef public int kind
    cdef public bint is_numeric
    cdef public unsigned int row_bits, row_mask
    cdef public unsigned int[:, ::1] orders, codes
    cdef public unsigned char[:, ::1] cells
    cdef public const long long[::1] first, n_codes, sorted_attribute, coded_attribute, sorted_column, coded_column
    cdef public const unsigned char[::1] row_class
    cdef public const double[::1] row_value, row_weight
    cdef public long long n_sorted, n_coded, n_counts, width


cdef class BinaryNodes:
    cdef public int[:, ::1] ints
    cdef public double[:, ::1] reals, stats


cdef class NodeSearch:
    cdef public double weight, min_weight, size
    cdef public bint has_class_weights
    cdef public const double[::1] class_scale
    cdef public double impurity, offset, scale, tie, centre, rest, unit
    cdef public double[::1] totals
    cdef public unsigned char[::1] is_constant
    cdef public double[:, ::1] counts
    cdef public double[::1] gains
    cdef public long long[::1] places
    cdef public const double[::1] progress
    cdef public double numerator, denominator, limit, bar, floor
    cdef public long long place
    cdef public bint is_varied
    cdef public double[::1] left, right
    cdef public long long[::1] class_counts, active, base
    cdef public unsigned long long[::1] occurring
    cdef public double[::1] by_code
    cdef public long long[::1] keys


cdef class Scratch:
    cdef public unsigned int[::1] is_right, spare
    cdef public int[::1] places
    cdef public double[::1] finished
    cdef public const double[::1] progress
