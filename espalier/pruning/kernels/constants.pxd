# The numbers of constants.py, for kernels.
cdef enum:
    NORMAL = 0
    C45 = 1
    EXACT = 2
    KEEP_SHARES = 0
    RENEW_KNOWN = 1
    RENEW_ALL = 2
