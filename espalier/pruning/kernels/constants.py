"""Integer constants shared by Python and the kernels."""

from typing import Final

# How an upper confidence limit is computed.
NORMAL: Final = 0
C45: Final = 1
EXACT: Final = 2

# How branch shares are renewed: not at all, from the rows with known value, or from all rows that go down one branch.
KEEP_SHARES: Final = 0
RENEW_KNOWN: Final = 1
RENEW_ALL: Final = 2
