"""Numbers that the binary grower and its kernels share; `constants.pxd` has them for C."""

from typing import Final

# An entry of an order: the row, and its class in the bits above if classes are counted without weights.
ROW_BITS: Final = 24
ROW_MASK: Final = (1 << 24) - 1
MAX_ROWS: Final = 1 << 24
MAX_CLASSES: Final = 256
MAX_CODES: Final = 256  # of a coded column

# What a row adds to a statistic, and how a split is scored.
TWO_CLASSES: Final = 0
CLASSES: Final = 1
NUMBERS: Final = 2
WEIGHTED_PAIR: Final = 3  # two classes or numbers, with row weights
WEIGHTED_CLASSES: Final = 4

# How the search in a column ended, if not with a place.
NO_SPLIT: Final = -1
CONSTANT: Final = -2  # nor will there be a split below
AGAIN: Final = -3  # the floor was too high

# Columns of the node tables.
FEATURE: Final = 0
FIRST_CHILD: Final = 1  # the other is the next node
LAST_LEFT: Final = 2  # last row of the left branch
FIRST_RIGHT: Final = 3  # first row of the right branch
N_INTS: Final = 4

WEIGHT: Final = 0
GAIN: Final = 1
N_REALS: Final = 2

# Columns are sorted by codes of 32 bits, in digits of 11; a table of slots finds values that occur.
CODE_BITS: Final = 32
DIGIT_BITS: Final = 11
DIGIT_VALUES: Final = 1 << 11
N_DIGITS: Final = 3
MAX_EQUAL_CODES: Final = 64
SMALL_NUMBERS: Final = 256
N_SLOTS: Final = 1024

# Rows that a scan skips at once, and from how many rows on.
BLOCK: Final = 16
CLASSES_BLOCK: Final = 32
MAX_COUNTED_CLASSES: Final = 8
MIN_COUNTED_ROWS: Final = 256
NUMBERS_BLOCK: Final = 8
MIN_SUMMED_ROWS: Final = 64

# Nodes of at most so many rows are not counted; more rows where there are more counts than such a node has cells.
FEW_ROWS: Final = 24
FEW_ROWS_OF_MANY_CODES: Final = 48
CODE_WORDS: Final = 4  # of 64 bits, one for each code
ALL_FIVES: Final = 0x077CB531  # a sequence of de Bruijn: any five of its bits in a row differ
MAX_SLOTS: Final = 64  # for the counts of nodes
MAX_POOL_BYTES: Final = 64_000_000
