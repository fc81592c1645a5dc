"""The tests that `make check-all` runs interpreted and with checked indexes: no test of kernels is left out."""

import re
from collections.abc import Mapping

from tests.factories import ROOT

CORE = ROOT / "tests" / "core"
FIGURES = "grows the data sets of the reference folder, which are too much for interpreted kernels"
PLAIN = "tests no kernel: trees are asked in plain Python"
ELSEWHERE: Mapping[str, str] = {
    "test_counterfactual.py": PLAIN,
    "test_growing_published_figures.py": FIGURES,
    "test_model_tree_published_figures.py": FIGURES,
    "test_pruning_published_figures.py": FIGURES,
    "test_replayed_paths.py": PLAIN,
}
"""Tests that import kernels or a slow twin and are not of these: why."""


def kernel_tests() -> list[str]:
    """Give the files that the Makefile names, without their folder."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    [names] = re.findall(
        r"^KERNEL_TESTS := \$\(addprefix tests/core/test_,\$\(addsuffix \.py,(.*)\)\)$", makefile, re.MULTILINE
    )
    return [f"test_{name}.py" for name in names.split()]


def test_each_is_named_once_and_is_there() -> None:
    named = kernel_tests()
    assert len(set(named)) == len(named)
    assert [name for name in named if not (CORE / name).is_file()] == []


def importing(pattern: str) -> set[str]:
    """Give the files of tests that import what a pattern says."""
    line = re.compile(rf"^\s*(?:from|import) {pattern}\b", re.MULTILINE)
    return {path.name for path in CORE.glob("test_*.py") if line.search(path.read_text(encoding="utf-8"))}


def test_whoever_imports_a_kernel_or_a_slow_twin_is_one_or_says_why_not() -> None:
    found = importing(r"(?:espalier\.kernels|espalier import kernels|tests\.reference|tests\.core\.growing_bridge)")
    assert found - set(kernel_tests()) == ELSEWHERE.keys()
