"""Numbers that Python and kernels share stand in two files, a module and its header."""

import importlib
import re
from pathlib import Path

import pytest

from espalier.config import training_parameters
from espalier.config.criteria import CRITERIA

ROOT = Path(__file__).parents[2]
HEADERS = [
    path.relative_to(ROOT) for path in sorted((ROOT / "espalier").rglob("*.pxd")) if "cdef enum" in path.read_text()
]
WORDS = {
    "criterion": tuple(CRITERIA),
    "nominal": training_parameters.NOMINAL_SPLITS,
    "numeric": training_parameters.NUMERIC_SPLITS,
    "missing": training_parameters.MISSING_STRATEGIES,
    "cost_function": ("no_costs", *training_parameters.COST_FUNCTIONS),
}


def numbers_of(header):
    """Return the members of the enums of a header."""
    members = re.findall(r"^    (\w+) = (.+)$", (ROOT / header).read_text(), re.MULTILINE)
    assert members
    assert len(dict(members)) == len(members)
    return {name: eval(number) for name, number in members}  # noqa: S307 - such as 1 << 16


@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_the_numbers_of_the_module_are_those_of_the_header(header):
    module = importlib.import_module(".".join(header.with_suffix("").parts))
    declared = numbers_of(header)
    shared = {name: number for name, number in vars(module).items() if type(number) is int and name in declared}
    assert shared
    assert shared == {name: declared[name] for name in shared}
    assert not {name for name, number in vars(module).items() if type(number) is int} - set(declared)


@pytest.mark.parametrize("field", WORDS)
def test_each_word_of_a_field_has_its_place_as_its_number(field):
    declared = numbers_of(Path("espalier/growing/kernels/constants.pxd"))
    of_words = {word.upper().replace("NONE", "NO_NUMERIC"): place for place, word in enumerate(WORDS[field])}
    assert of_words == {name: declared[name] for name in of_words}
