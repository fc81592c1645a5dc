"""Settings of hypothesis for every test, and what all processes share that tests start.

No deadline (a shared machine has slow moments), and the same examples each time, so that a test decides on the
change and not on its luck. `HYPOTHESIS_PROFILE=explore` looks for new ones.
"""

import math
import os
import sys

from hypothesis import HealthCheck, settings

from espalier import small_work

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=QUIET)
settings.register_profile("explore", deadline=None, max_examples=1000, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Tests start hundreds of processes. Where the environment forbids to keep bytecode, each compiles all sources again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Machine code with checked indexes is what is asked for: no test does without it because none is kept yet.
if os.environ.get("NUMBA_BOUNDSCHECK", "0") != "0":
    small_work._SPENT["seconds"] = math.inf
