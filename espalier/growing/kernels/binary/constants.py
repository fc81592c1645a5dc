"""The constants of `constants.pxd` that Python also needs.

Only kernels need the following::

    NO_SPLIT, CONSTANT, AGAIN   instead of a place: the column has no split, it is constant at the node (and below), or
                                it must be searched again without a floor
    BLOCK, CLASSES_BLOCK        how many rows a scan may skip at once, with two and with several classes
    NUMBERS_BLOCK               the same for a numeric target
    MIN_COUNTED_ROWS            with several classes, no rows are skipped at nodes of fewer rows
    MIN_SUMMED_ROWS             the same for a numeric target
    MAX_COUNTED_CLASSES         no rows are skipped if there are more classes
    FEW_ROWS                    nodes with at most this number of rows have no counts
    ALL_FIVES                   a de Bruijn sequence: any two runs of five bits differ
    MAX_SLOTS, MAX_POOL_BYTES   limits on the stored counts: number of nodes, and bytes (three nodes are always allowed)
"""

from typing import Final

MAX_CLASSES: Final = 256
MAX_CODES: Final = 256  # of a coded column

# Kinds of statistics: they determine what a row adds to the sums, and how a split is scored.
TWO_CLASSES: Final = 0
CLASSES: Final = 1
NUMBERS: Final = 2
WEIGHTED_PAIR: Final = 3  # two classes or numbers, with row weights
WEIGHTED_CLASSES: Final = 4

# Columns of the node tables.
FEATURE: Final = 0
FIRST_CHILD: Final = 1  # the second child is the next node
LAST_LEFT: Final = 2  # a row of the left branch with the largest value
FIRST_RIGHT: Final = 3  # a row of the right branch with the least value
N_INTS: Final = 4

WEIGHT: Final = 0
GAIN: Final = 1
N_REALS: Final = 2

# Columns are sorted by codes of 32 bits, in digits of 11.
CODE_BITS: Final = 32
DIGIT_BITS: Final = 11
N_DIGITS: Final = 3

# Replaces FEW_ROWS for classes without row weights if a node of 48 rows has fewer coded cells than counts.
FEW_ROWS_OF_MANY_CODES: Final = 48
CODE_WORDS: Final = 4  # words of 64 bits, which have one bit for each code
