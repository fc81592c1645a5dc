from espalier.growing.kernels.arguments cimport Arguments


cdef class BinaryColumns(Arguments):
    cdef public int kind
    cdef public bint is_numeric
    cdef public unsigned int row_bits
    cdef public unsigned int row_mask
    cdef public unsigned int[:, ::1] orders
    cdef public unsigned int[:, ::1] codes
    cdef public unsigned char[:, ::1] cells
    cdef public const long long[::1] first
    cdef public const long long[::1] n_codes
    cdef public const long long[::1] sorted_attribute
    cdef public const long long[::1] coded_attribute
    cdef public const long long[::1] sorted_column
    cdef public const long long[::1] coded_column
    cdef public const unsigned char[::1] row_class
    cdef public const double[::1] row_value
    cdef public const double[::1] row_weight
    cdef public long long n_sorted
    cdef public long long n_coded
    cdef public long long n_counts
    cdef public long long width


cdef class BinaryNodes:
    cdef public int[:, ::1] ints
    cdef public double[:, ::1] reals
    cdef public double[:, ::1] stats


cdef class NodeSearch:
    cdef public double weight
    cdef public double min_weight
    cdef public double size
    cdef public bint has_class_weights
    cdef public const double[::1] class_scale
    cdef public double impurity
    cdef public double offset
    cdef public double scale
    cdef public double tie
    cdef public double centre
    cdef public double rest
    cdef public double[::1] totals
    cdef public unsigned char[::1] is_constant
    cdef public double[:, ::1] counts
    cdef public double[::1] gains
    cdef public long long[::1] places
    cdef public const double[::1] progress
    cdef public double numerator
    cdef public double denominator
    cdef public double limit
    cdef public double bar
    cdef public double floor
    cdef public long long place
    cdef public bint is_varied
    cdef public double[::1] left
    cdef public double[::1] right
    cdef public long long[::1] class_counts
    cdef public long long[::1] active
    cdef public long long[::1] base
    cdef public unsigned long long[::1] occurring
    cdef public double[::1] by_code
    cdef public long long[::1] keys


cdef class Scratch:
    cdef public unsigned int[::1] is_right
    cdef public unsigned int[::1] spare
    cdef public int[::1] places
    cdef public double[::1] finished
    cdef public const double[::1] progress
