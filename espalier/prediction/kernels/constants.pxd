cdef enum:
    OTHER = -1  # see constants.py
    SEVERAL = -1  # instead of a branch or leaf: the row takes all branches
    N_SLOTS = 16  # number of rows that are processed together
