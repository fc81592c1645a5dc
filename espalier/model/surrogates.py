"""Surrogate tests (Breiman et al. 1984, chapter 5): tests of other attributes if a value is missing."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from espalier.arrays import Floats, Ints, Places
from espalier.model.node_tests import NOMINAL, NUMERIC


@dataclass(frozen=True, slots=True)
class Surrogates:
    """Tests that replace a node's own test if its value is missing or unseen (as in rpart): s tests of n nodes.

    Attributes:
        start: int32 (n+1); the tests of node i are ``start[i] : start[i+1]``, best first.
        feature: int32 (s); the attribute tested instead.
        test: int8 (s); NUMERIC or NOMINAL.
        threshold: float64 (s); NaN for a nominal test.
        below: int32 (s); the branch where the value is at most ``threshold`` (the other branch is 1 - below).
        code_start: int32 (s+1), code_branch: int32; branches of categories, as in `Tree`, but by surrogate, not node.
        agreement: float64 (s); adjusted agreement, above 0 and at most 1.
    """

    start: Ints
    feature: Ints
    test: npt.NDArray[np.int8]
    threshold: Floats
    below: Ints
    code_start: Ints
    code_branch: Ints
    agreement: Floats


def arranged_surrogates(surrogates: Surrogates, tests: Places) -> Surrogates:
    """Return the surrogates of a tree in which node i has the test that node ``tests[i]`` had."""
    start, places = ragged(surrogates.start, tests)
    code_start, codes = ragged(surrogates.code_start, places)
    return Surrogates(
        start=start,
        feature=surrogates.feature[places],
        test=surrogates.test[places],
        threshold=surrogates.threshold[places],
        below=surrogates.below[places],
        code_start=code_start,
        code_branch=surrogates.code_branch[codes],
        agreement=surrogates.agreement[places],
    )


def ragged(start: Ints, picked: Places) -> tuple[Ints, Places]:
    """Select rows of a ragged table. Return the new starts, int32, and the indexes of the selected entries, intp.

    start: int32; row i of the table has the entries ``start[i] : start[i+1]``. picked: the selected rows.

    >>> start, places = ragged(np.array([0, 2, 2, 5], np.int32), np.array([2, 1, 0]))
    >>> start.tolist(), places.tolist()
    ([0, 3, 3, 5], [2, 3, 4, 0, 1])
    """
    starts = np.zeros(len(picked) + 1, np.int32)
    if start[-1] == 0:  # no entries, such as codes if all attributes are numbers
        return starts, np.empty(0, np.intp)
    first = start.take(picked)
    counts = start.take(picked + 1) - first
    np.cumsum(counts, out=starts[1:])
    return starts, np.arange(starts[-1]) + np.repeat(first - starts[:-1], counts)


def surrogate_conditions(
    surrogates: Surrogates, n_children: Places, n_attributes: int
) -> Iterator[tuple[str, bool, str]]:
    """Yield (array's name, whether the condition holds, message) of each condition; each relies on those before it."""
    n_nodes, n_tests = len(n_children), len(surrogates.feature)
    for name, length in (("start", n_nodes), ("code_start", n_tests)):
        starts = getattr(surrogates, name)
        holds = len(starts) == length + 1 and starts[0] == 0 and bool(np.all(np.diff(starts) >= 0))
        yield f"surrogates/{name}", holds, f"must have {length + 1} entries, the first 0, and never decrease"
    for name in ("test", "threshold", "below", "agreement"):
        yield f"surrogates/{name}", len(getattr(surrogates, name)) == n_tests, f"must have {n_tests} entries"
    yield "surrogates/start", surrogates.start[-1] == n_tests, "must end at the number of surrogates"
    ends = surrogates.code_start[-1] == len(surrogates.code_branch)
    yield "surrogates/code_start", ends, "must end at the length of code_branch"
    binary = bool(np.all(n_children[np.diff(surrogates.start) > 0] == 2))
    yield "surrogates/start", binary, "only a node with two branches may have surrogates"
    inside = bool(np.all((surrogates.feature >= 0) & (surrogates.feature < n_attributes)))
    yield "surrogates/feature", inside, f"must be at least 0 and below {n_attributes}, the number of attributes"
    cuts = surrogates.test == NUMERIC
    yield "surrogates/test", bool(np.all(cuts | (surrogates.test == NOMINAL))), "must be 1 or 2"
    finite = bool(np.all(np.isfinite(surrogates.threshold[cuts])))
    yield "surrogates/threshold", finite, "a numeric test needs a finite threshold"
    sides = bool(np.all((surrogates.below == 0) | (surrogates.below == 1)))
    yield "surrogates/below", sides, "must be branch 0 or 1"
    codes = surrogates.code_branch
    yield "surrogates/code_branch", bool(np.all((codes >= -1) & (codes <= 1))), "must be -1 or a branch of its node"
    shares = bool(np.all((surrogates.agreement > 0) & (surrogates.agreement <= 1)))
    yield "surrogates/agreement", shares, "must be above 0 and at most 1"
