"""``python -m service.cli``: the same as ``espalier``."""

import sys

from service.cli import main

if __name__ == "__main__":  # a worker's spawned child imports this file, too
    sys.exit(main())
