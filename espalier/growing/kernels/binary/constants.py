"""The numbers of `constants.pxd` that Python needs, too.

Those of the kernels alone: NO_SPLIT, CONSTANT and AGAIN end the search in a column, the second for the nodes below,
too, the third where the floor was too high; BLOCK, CLASSES_BLOCK and NUMBERS_BLOCK are rows that a scan skips at once,
MIN_COUNTED_ROWS and MIN_SUMMED_ROWS from how many rows on; nodes of at most FEW_ROWS are not counted; of ALL_FIVES, a
sequence of de Bruijn, any five bits in a row differ; MAX_SLOTS and MAX_POOL_BYTES are for the counts of nodes.
"""

from typing import Final

MAX_CLASSES: Final = 256
MAX_CODES: Final = 256  # of a coded column

# Kinds of statistics: the summand of a row, and the score of a split.
TWO_CLASSES: Final = 0
CLASSES: Final = 1
NUMBERS: Final = 2
WEIGHTED_PAIR: Final = 3  # two classes or numbers, with row weights
WEIGHTED_CLASSES: Final = 4

# Columns of the node tables.
FEATURE: Final = 0
FIRST_CHILD: Final = 1  # the other is the next node
LAST_LEFT: Final = 2  # last row of the left branch
FIRST_RIGHT: Final = 3  # first row of the right branch
N_INTS: Final = 4

WEIGHT: Final = 0
GAIN: Final = 1
N_REALS: Final = 2

# Columns are sorted by codes of 32 bits, in digits of 11.
CODE_BITS: Final = 32
DIGIT_BITS: Final = 11
N_DIGITS: Final = 3

FEW_ROWS_OF_MANY_CODES: Final = 48  # instead of FEW_ROWS where there are more counts than such a node has cells
CODE_WORDS: Final = 4  # of 64 bits, one for each code
