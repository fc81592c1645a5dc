"""Numbers that Python and kernels share stand in two files, a module and its header."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADERS = [
    path.relative_to(ROOT) for path in sorted((ROOT / "espalier").rglob("*.pxd")) if "cdef enum" in path.read_text()
]


def numbers_of(header):
    """Return the members of the enums of a header."""
    members = re.findall(r"^    (\w+) = (.+)$", (ROOT / header).read_text(), re.MULTILINE)
    assert members
    assert len(dict(members)) == len(members)
    return {name: eval(number) for name, number in members}  # noqa: S307 - such as 1 << 16


@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_the_header_and_the_module_have_the_same_numbers(header):
    module = importlib.import_module(".".join(header.with_suffix("").parts))
    declared = numbers_of(header)
    assert declared == {name: getattr(module, name) for name in declared}
