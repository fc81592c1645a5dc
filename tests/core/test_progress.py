"""Progress: the share of the whole work never falls, whatever the phases are, and every phase has a name."""

import threading
from typing import Any

import pytest
from hypothesis import given, strategies as st

import espalier
from espalier.progress import PHASE_ENDS

PHASES = (*PHASE_ENDS, "predicting", "measuring", "writing")
SHARES = st.floats(0, 1)
STEPS = st.one_of(st.sampled_from(PHASES), SHARES)
"""A phase that begins, or a share of it that is done."""


class Watched(espalier.Progress):
    """Notes every phase, and the share when it begins."""

    def __init__(self) -> None:
        super().__init__()
        self.phases: list[str] = []
        self.shares: list[float] = []

    def begin(self, phase: str) -> None:
        self.shares.append(self.share)
        super().begin(phase)
        self.shares.append(self.share)
        self.phases.append(phase)


def table(n: int = 120) -> espalier.Dataset:
    rows = [
        {"x": x * 37 % 101, "z": "abc"[x % 3], "y": "no" if x * 37 % 101 < 50 or x % 11 == 0 else "yes"}
        for x in range(n)
    ]
    return espalier.dataset_from_rows(rows, target="y")


def follow(progress: espalier.Progress, steps: list[Any], seen: list[float], whole: espalier.Progress) -> None:
    for step in steps:
        if isinstance(step, str):
            progress.begin(step)
        else:
            progress.state[0] = step
        seen.append(whole.share)


@given(st.lists(STEPS))
def test_the_share_never_falls_and_ends_at_one(steps: list[Any]) -> None:
    progress, seen = espalier.Progress(), [0.0]

    follow(progress, steps, seen, progress)
    progress.begin("done")

    assert seen == sorted(seen)
    assert (progress.share, progress.phase) == (1.0, "done")


@given(st.lists(st.lists(STEPS), min_size=1, max_size=5))
def test_the_share_of_several_trainings_never_falls(trainings: list[list[Any]]) -> None:
    whole, seen = espalier.Progress(), [0.0]
    whole.begin("loading")

    for place, steps in enumerate(trainings):
        part = whole.part(place / len(trainings), (place + 1) / len(trainings))
        follow(part, steps, seen, whole)
        assert whole.share <= (place + 1) / len(trainings) or whole.share == seen[0]

    assert seen == sorted(seen)
    assert seen[-1] <= 1.0


def test_each_item_of_a_phase_counts_as_much() -> None:
    progress = espalier.Progress()
    progress.begin("predicting")

    assert [progress.share for _ in progress.each(range(4))] == [0.0, 0.25, 0.5, 0.75]
    assert progress.share == 1.0


def test_a_stop_ends_the_items() -> None:
    progress = espalier.Progress()
    items = progress.each(range(4))
    next(items)
    progress.stop()

    with pytest.raises(espalier.Cancelled):
        next(items)


def sampled(progress: espalier.Progress, work: Any) -> list[float]:
    """Return the shares that another thread sees meanwhile."""
    seen, is_over = [0.0], threading.Event()

    def look() -> None:
        while not is_over.wait(0.0005):
            seen.append(progress.share)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        work()
    finally:
        is_over.set()
        thread.join()
    return [*seen, progress.share]


@pytest.mark.parametrize("preset", ["cart", "c45", "j48", "reptree"])
@pytest.mark.parametrize("pruning", [None, *sorted({*espalier.PRUNERS} - {"model_tree"})])
def test_a_training_names_its_phases_and_never_goes_back(preset: str, pruning: str | None) -> None:
    more = {"select": "cv"} if pruning == "cost_complexity" else {}
    method = None if pruning is None else {"method": pruning, **more}
    holdout = None if pruning is None else {"fraction": 0.3, "seed": 1}
    progress = Watched()

    seen = sampled(
        progress, lambda: espalier.train(table(), preset, pruning=method, holdout=holdout, progress=progress)
    )

    assert seen == sorted(seen)
    assert progress.shares == sorted(progress.shares)
    expected = ["growing", *([] if pruning is None else ["pruning"]), "measuring", "done"]
    assert list(dict.fromkeys(progress.phases)) == expected
    assert progress.share == 1.0


def test_a_model_tree_is_fitted_between_growing_and_pruning() -> None:
    data = espalier.dataset_from_rows([{"x": x, "y": abs(x - 30) + x % 3} for x in range(60)], target="y")
    progress = Watched()

    model = espalier.train(data, "m5", progress=progress)

    assert list(dict.fromkeys(progress.phases)) == ["growing", "fitting", "pruning", "measuring", "done"]
    assert progress.shares == sorted(progress.shares)
    progress = Watched()
    espalier.prune(model, "model_tree", dataset=data, progress=progress)
    assert list(dict.fromkeys(progress.phases)) == ["pruning", "measuring", "done"]


@pytest.mark.parametrize("method", ["explain", "predict"])
def test_answering_rows_counts_the_rows(method: str) -> None:
    model = espalier.train(table(), "cart")
    progress = Watched()

    answers = getattr(espalier, method)(model, [{"x": 1}, {"x": 70}], progress=progress)

    assert answers == getattr(espalier, method)(model, [{"x": 1}, {"x": 70}])
    assert progress.phases == [f"{method}ing"]
    assert progress.share == PHASE_ENDS.get(progress.phase, 1.0)
