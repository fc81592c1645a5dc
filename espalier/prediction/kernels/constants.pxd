cdef enum:
    OTHER = -1
    SEVERAL = -1
    N_SLOTS = 16
