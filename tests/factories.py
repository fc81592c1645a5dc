"""Where the tests find their data, and small builders that make a test read as one sentence."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = Path(os.environ.get("ESPALIER_REFERENCE", ROOT.parent / "shared" / "reference"))

needs_reference = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason=f"the reference figures are not beside this checkout ({REFERENCE.name}/ not found)"
)

# Python that starts a command without root's right to write anywhere (PR_CAPBSET_DROP, CAP_DAC_OVERRIDE).
AS_ANYBODY = "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
