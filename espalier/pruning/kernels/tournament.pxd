cdef class Tournament:
    cdef double[::1] key
    cdef double[::1] weight
    cdef int[::1] winners
    cdef int n_places


cdef int winner(Tournament tournament, int place) noexcept nogil
cdef void seed(Tournament tournament) noexcept nogil
cdef void update(Tournament tournament, int node) noexcept nogil
cdef void remove(Tournament tournament, int node, int stop) noexcept nogil
