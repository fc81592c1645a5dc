from espalier.growing.kernels.arguments cimport Workspace
from espalier.growing.kernels.growth cimport Growth

cdef double VALIDATION_SLACK


cdef (bint, long long) loses_by_split(
    Growth growth, int node, int n_branches, long long start, long long stop
) noexcept nogil
cdef long long partition_validation(
    Growth growth, int node, long long first_new, long long start, long long stop, long long base
) noexcept nogil
cdef double _loss(Workspace work, int row, double weight, double answer) noexcept nogil
cdef double _share_of_branch(Growth growth, int node, int row, int branch) noexcept nogil
cdef int _surrogate_branch(Growth growth, long long i, int row) noexcept nogil
