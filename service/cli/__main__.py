"""``python -m service.cli``: the same as ``espalier``."""

import sys

from service.cli import main

sys.exit(main())
