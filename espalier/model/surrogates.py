"""Surrogate tests (Breiman et al. 1984, chapter 5). If a value is missing, they test another attribute."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from espalier.arrays import Array, Floats, Ints, Places
from espalier.model.node_tests import NOMINAL, NUMERIC


@dataclass(frozen=True, slots=True)
class Surrogates:
    """Tests of other attributes, used if the value that a node tests is missing or unseen (as in rpart).

    The arrays describe s surrogate tests of n nodes.

    Attributes:
        start: int32 (n+1); node i has the tests ``start[i] : start[i+1]``, best first.
        feature: int32 (s); index of the attribute that the surrogate tests.
        test: int8 (s); NUMERIC or NOMINAL.
        threshold: float64 (s); NaN for a nominal test.
        below: int32 (s); the branch for values of at most ``threshold``; other values take the branch 1 - below.
        code_start: int32 (s+1), code_branch: int32; branches of categories as in `Tree`, but for each surrogate.
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
    """Return surrogates for rearranged nodes: node i gets those of ``tests[i]``, a node of the tree before."""
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


def is_within(values: Array, low: float, high: float) -> bool:
    """Return whether every value is from `low` to `high`; False if one is NaN."""
    return bool(np.all((values >= low) & (values <= high)))


def conditions_of_starts(name: str, start: Ints, n_rows: int, n_entries: int) -> Iterator[tuple[str, bool, str]]:
    """Yield the conditions on the array `start` of a ragged table (see `ragged`). `name` is the name of the array."""
    yield name, len(start) == n_rows + 1 and start[0] == 0, f"must have {n_rows + 1} entries, the first 0"
    yield name, bool(np.all(np.diff(start) >= 0)), "must never decrease"
    yield name, start[-1] == n_entries, f"must end at the length of its entries, {n_entries}"


def surrogate_conditions(
    surrogates: Surrogates, n_children: Places, n_attributes: int
) -> Iterator[tuple[str, bool, str]]:
    """Yield conditions on the arrays (`espalier.model.tree.Condition`). Each assumes that the earlier ones hold."""
    n_tests, codes = len(surrogates.feature), surrogates.code_branch
    yield from conditions_of_starts("surrogates/start", surrogates.start, len(n_children), n_tests)
    yield from conditions_of_starts("surrogates/code_start", surrogates.code_start, n_tests, len(codes))
    for name in ("test", "threshold", "below", "agreement"):
        yield f"surrogates/{name}", len(getattr(surrogates, name)) == n_tests, f"must have {n_tests} entries"
    binary = bool(np.all(n_children[np.diff(surrogates.start) > 0] == 2))
    yield "surrogates/start", binary, "only a node with two branches may have surrogates"
    inside = is_within(surrogates.feature, 0, n_attributes - 1)
    yield "surrogates/feature", inside, f"must be at least 0 and below {n_attributes}, the number of attributes"
    cuts = surrogates.test == NUMERIC
    yield "surrogates/test", bool(np.all(cuts | (surrogates.test == NOMINAL))), "must be 1 or 2"
    finite = bool(np.all(np.isfinite(surrogates.threshold[cuts])))
    yield "surrogates/threshold", finite, "a numeric test needs a finite threshold"
    yield "surrogates/below", is_within(surrogates.below, 0, 1), "must be branch 0 or 1"
    yield "surrogates/code_branch", is_within(codes, -1, 1), "must be -1 or a branch of its node"
    shares = bool(np.all((surrogates.agreement > 0) & (surrogates.agreement <= 1)))
    yield "surrogates/agreement", shares, "must be above 0 and at most 1"
