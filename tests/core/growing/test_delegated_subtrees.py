"""A tree whose top leaves its subtrees to jobs is, bit by bit, the tree that is grown in one go."""

from typing import Any

import numpy as np
import pytest

from espalier import (
    Cancelled,
    DataError,
    Dataset,
    Feature,
    FeatureKind,
    Progress,
    Role,
    Schema,
    dataset_from_rows,
    training_config,
)
from espalier.config.presets import resolved
from espalier.growing import binary_data, general_grower, grow as growing
from espalier.growing.grow import grow
from espalier.model.tree import Tree

N_ROWS = 600
CONFIGS: list[tuple[str, str, dict[str, Any]]] = [
    ("classes", "c45", {}),
    ("classes", "c45", {"min_weight_leaf": 0.5, "mdl_correction": False}),
    ("classes", "j48", {"max_depth": 5}),
    ("classes", "id3", {"missing": "fractional", "numeric": "best"}),
    ("classes", "reptree", {}),
    ("classes", "cart", {"criterion": "information_gain"}),
    ("classes", "cart", {"criterion": "gini", "missing": "majority", "class_weight": "balanced"}),
    ("classes", "cart", {"criterion": "chi_square", "nominal": "multiway", "missing": "spread"}),
    ("numbers", "m5", {}),
    ("numbers", "reptree", {}),
    ("numbers", "cart", {"criterion": "sdr", "missing": "fractional", "max_depth": 6}),
    ("numbers", "cart", {"criterion": "poisson", "missing": "imputed"}),
    ("classes", "cart", {"numeric": "median", "chi_square_alpha": 0.2}),
    ("classes", "c45", {"numeric": "boundary", "nominal": "one_vs_rest"}),
    ("classes", "c45", {"nominal": "multiway", "missing": "direction", "cut_points": {"n0": (-0.5, 0.1, 1.0)}}),
]


def table(target: str, *, weighted: bool) -> Dataset:
    """Numbers, ordered and unordered categories, a tenth of the cells missing."""
    random = np.random.default_rng(7)
    numbers = [random.normal(size=N_ROWS), np.round(random.normal(size=N_ROWS), 1)]
    codes = [random.integers(0, k, N_ROWS).astype(np.int32) for k in (2, 5, 9)]
    signal = numbers[0] + codes[1] * 0.4 + (codes[2] == 3) + random.normal(size=N_ROWS) * 0.5
    for column in numbers:
        column[random.random(N_ROWS) < 0.1] = np.nan
    for column in codes:
        column[random.random(N_ROWS) < 0.1] = -1
    features = [Feature(f"n{place}", FeatureKind.NUMERIC) for place in range(2)]
    kinds = (FeatureKind.NOMINAL, FeatureKind.ORDINAL, FeatureKind.NOMINAL)
    for place, (kind, k) in enumerate(zip(kinds, (2, 5, 9), strict=True)):
        features.append(Feature(f"c{place}", kind, categories=tuple(f"v{code}" for code in range(k))))
    columns = [*numbers, *codes]
    if target == "classes":
        features.append(Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b", "c")))
        columns.append(np.digitize(signal, [0.5, 1.5]).astype(np.int32))
    else:
        features.append(Feature("y", FeatureKind.NUMERIC, Role.TARGET))
        columns.append(np.abs(np.round(signal, 2)))
    if weighted:
        features.append(Feature("w", FeatureKind.NUMERIC, Role.WEIGHT))
        columns.append(random.choice([0.0, 0.3, 1.0, 2.5], N_ROWS))
    return Dataset(Schema(tuple(features)), tuple(columns))


def tree_of(data: Dataset, preset: str, fields: dict[str, Any], progress: Progress | None = None) -> Tree:
    config = training_config(preset, **fields, pruning=None)
    return grow(data, resolved(config, data.schema), progress=progress).tree


@pytest.fixture(autouse=True)
def _always_by_the_general_grower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_data, "is_for_binary_grower", lambda *_: False)


@pytest.mark.parametrize("weights", ["unit", "weighted"])
@pytest.mark.parametrize(("target", "preset", "fields"), CONFIGS)
def test_the_tree_is_the_same_in_one_go_and_in_parts(
    target: str, preset: str, fields: dict[str, Any], weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table(target, weighted=weights == "weighted")
    whole = tree_of(data, preset, fields)
    monkeypatch.setattr(general_grower, "MIN_ROWS_TO_SHARE", 10)
    jobs = 0
    copied = general_grower._GeneralGrower._copied_task

    def counted(self: Any, job: Any) -> Any:
        nonlocal jobs
        jobs += 1
        return copied(self, job)

    monkeypatch.setattr(general_grower._GeneralGrower, "_copied_task", counted)
    for share, threads in ((2, 1), (3, 2), (40, 3)):
        monkeypatch.setattr(general_grower, "MIN_PARTS", share)
        monkeypatch.setattr(growing, "n_threads", lambda threads=threads: threads)
        assert tree_of(data, preset, fields) == whole
    assert jobs > 3


def test_a_stop_reaches_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(general_grower, "MIN_ROWS_TO_SHARE", 10)
    progress = Progress()
    copied = general_grower._GeneralGrower._copied_task

    def stopped(self: Any, job: Any) -> Any:
        progress.stop()
        return copied(self, job)

    monkeypatch.setattr(general_grower._GeneralGrower, "_copied_task", stopped)
    with pytest.raises(Cancelled):
        tree_of(table("classes", weighted=False), "c45", {}, progress)


def test_all_weight_is_settled_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(general_grower, "MIN_ROWS_TO_SHARE", 10)
    progress = Progress()
    tree_of(table("classes", weighted=True), "c45", {}, progress)
    assert progress.state[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [
        ("MAX_NODES", 15, "the tree would have more than"),
        (
            "MAX_CODE_ENTRIES",
            20,
            r"categories would have more than .* \('c2' has 9 categories\): set max_depth",
        ),
    ],
)
@pytest.mark.parametrize("least_rows", [10, 10_000])
def test_a_tree_that_passes_a_limit_is_refused_in_one_go_and_in_parts(
    limit: str, most: int, said: str, least_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table("classes", weighted=False)
    fields = {"nominal": "subset", "missing": "majority"}
    whole = tree_of(data, "cart", fields)
    assert whole.n_nodes > most
    assert len(whole.code_branch) > most
    monkeypatch.setattr(general_grower, "MIN_ROWS_TO_SHARE", least_rows)
    monkeypatch.setattr(general_grower, limit, most)
    with pytest.raises(DataError, match=said):
        tree_of(data, "cart", fields)


def test_the_categories_of_surrogates_are_limited_like_those_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree has one test, a threshold. Its surrogate has a branch for each of the 9 categories."""
    rows = [{"x": row, "c": f"c{row // 2}", "y": "ab"[row >= 8]} for row in range(18)]
    data = dataset_from_rows(rows, target="y")
    monkeypatch.setattr(general_grower, "MAX_CODE_ENTRIES", 9)
    surrogates = tree_of(data, "cart", {"missing": "surrogate"}).surrogates
    assert surrogates is not None
    assert len(surrogates.code_branch) == 9
    monkeypatch.setattr(general_grower, "MAX_CODE_ENTRIES", 8)
    with pytest.raises(DataError, match=r"categories would have more than .* \('c' has 9 categories\)"):
        tree_of(data, "cart", {"missing": "surrogate"})
