from espalier.growing.kernels.arguments cimport GrowParameters, Targets

cdef double NOISE, WEIGHT_TOLERANCE, LN_2

cdef double term(int criterion, int n_classes, const double *stats, const double *totals) noexcept nogil
cdef double _number_term(int criterion, const double *stats, const double *totals) noexcept nogil
cdef double root_term(int criterion, double weight, double squares) noexcept nogil
cdef double poisson_deviance(double weight, double apart, double centre) noexcept nogil
cdef (double, double) gain_form(int criterion, double whole_term, double known_weight, double node_weight) noexcept nogil
cdef double weight_of(const double *stats, int n_classes) noexcept nogil
cdef double size_of(GrowParameters parameters, const double *stats) noexcept nogil
cdef bint is_leaf(
    GrowParameters parameters, const double *stats, long long depth, bint is_constant
) noexcept nogil
cdef double plogp(double weight, double whole) noexcept nogil
cdef double with_cost(GrowParameters parameters, double score, double cost, bint paid) noexcept nogil
cdef void clear(double[::1] stats) noexcept nogil
cdef void add_row(double *stats, Targets targets, int n_classes, int row, double weight, double centre) noexcept nogil
