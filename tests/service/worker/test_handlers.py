"""What a job does: training and pruning by the core, on data sets from the database."""

from typing import Any

import pytest

import espalier
from service.database.engine import Sessions, connect, read_session, sessions, transaction
from service.database.tables import Kind, Version
from service.repositories import datasets, models
from service.repositories.model_cache import load_version
from service.settings import Settings
from service.worker import handlers
from service.worker.failures import Failed
from service.worker.handlers import HANDLERS, Cancelled, JobContext, Released, perform
from tests.service.kept import PATIENTS, keep_data_set, patients

MORE = "age,pressure,drug\n33,HIGH,A\n66,HIGH,B\n41,LOW,C\n19,NORMAL,X\n"


def training(data_set_id: str, *, holdout: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    config = espalier.config_to_dict(espalier.training_config("cart", **fields))
    return {"model": "drugs", "dataset": data_set_id, "preset": "cart", "config": config, "holdout": holdout}


def pruning(version: Version, *, holdout: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    named = {"model": "drugs", "version": version.number, "version_id": version.id}
    return {**named, "method": "reduced_error", "params": params, "holdout": holdout}


def context(source: Sessions, progress: espalier.Progress | None = None) -> JobContext:
    return JobContext(source, progress or espalier.Progress(), "no job", send=pytest.fail, settings=Settings())


def done(source: Sessions, kind: Kind, payload: dict[str, Any]) -> models.NewVersion:
    outcome = perform(context(source), kind, payload)
    assert isinstance(outcome, models.NewVersion), outcome
    return outcome


def failed(source: Sessions, kind: Kind, payload: dict[str, Any]) -> Failed:
    outcome = perform(context(source), kind, payload)
    assert isinstance(outcome, Failed), outcome
    return outcome


def keep(source: Sessions, new: models.NewVersion) -> Version:
    with transaction(source) as session:
        return models.add_version(session, new)


def test_every_kind_of_job_has_a_handler() -> None:
    assert set(HANDLERS) == set(Kind)


class Watched(espalier.Progress):
    """Notes the share and the phase whenever a phase begins, or one of several trainings."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[float, str]] = []

    def begin(self, phase: str) -> None:
        super().begin(phase)
        self.seen.append((self.share, self.phase))

    def part(self, start: float, end: float) -> espalier.Progress:
        self.seen.append((self.share, self.phase))
        return super().part(start, end)


def test_the_progress_of_a_job_never_falls_and_always_has_a_phase(source: Sessions) -> None:
    data_set_id = keep_data_set(source)
    parent = keep(source, done(source, Kind.TRAIN, training(data_set_id, holdout={"rows": [0, 5, 8]})))
    jobs = [
        (Kind.TRAIN, training(data_set_id, pruning={"method": "pessimistic"})),
        (Kind.PRUNE, pruning(parent)),
        (Kind.EVALUATE, comparison(data_set_id)),
    ]

    for kind, payload in jobs:
        progress = Watched()
        perform(context(source, progress), kind, payload)

        shares, phases = zip(*progress.seen, strict=True)
        assert list(shares) == sorted(shares)
        assert (phases[0], phases[-1], progress.share) == ("loading", "done", 1.0)
        assert all(phases)


def test_training_gives_the_document_that_the_core_gives(source: Sessions) -> None:
    data_set_id = keep_data_set(source)

    new = done(source, Kind.TRAIN, training(data_set_id))

    expected = espalier.train(patients(), "cart")
    assert new.document == espalier.to_json(expected)
    assert (new.model, new.preset, new.data_set_id, new.parent_id) == ("drugs", "cart", data_set_id, None)
    assert new.summary == espalier.summary(expected)
    assert new.summary["train_errors"] == 0
    assert new.trace is None
    assert new.seconds > 0


def test_a_training_that_ends_with_a_pruning_keeps_its_trace(source: Sessions) -> None:
    new = done(source, Kind.TRAIN, training(keep_data_set(source), pruning={"method": "pessimistic"}))

    assert new.trace is not None
    assert new.trace["method"] == "pessimistic"
    assert new.parent_id is None


def test_held_out_rows_are_not_learned_from(source: Sessions) -> None:
    new = done(source, Kind.TRAIN, training(keep_data_set(source), holdout={"rows": [0, 5, 8]}))

    assert (new.summary["n_rows"], new.summary["n_training_rows"]) == (12, 9)
    assert new.summary["holdout"]["n_rows"] == 3


def test_a_data_set_of_its_own_can_be_held_out_and_is_remembered(source: Sessions) -> None:
    other = keep_data_set(source, espalier.dataset_from_csv(MORE, target="drug"), name="more")

    new = done(source, Kind.TRAIN, training(keep_data_set(source), holdout={"dataset": other}))

    assert new.holdout_data_set_id == other
    assert new.summary["n_training_rows"] == 12
    assert new.summary["holdout"]["n_rows"] == 4


def test_pruning_makes_a_version_with_a_parent_by_the_rows_held_out_at_training(source: Sessions) -> None:
    data_set_id = keep_data_set(source)
    parent = keep(source, done(source, Kind.TRAIN, training(data_set_id, holdout={"rows": [0, 5, 8]})))

    new = done(source, Kind.PRUNE, pruning(parent))

    expected = espalier.prune(
        espalier.train(patients(), "cart", holdout=espalier.Holdout(rows=(0, 5, 8))),
        "reduced_error",
        dataset=patients(),
    )
    assert new.document == espalier.to_json(expected.model)
    assert new.trace == expected.trace
    assert (new.parent_id, new.data_set_id, new.preset) == (parent.id, data_set_id, "cart")


def test_pruning_uses_the_data_set_that_was_held_out_at_training(source: Sessions) -> None:
    other = keep_data_set(source, espalier.dataset_from_csv(MORE, target="drug"), name="more")
    parent = keep(source, done(source, Kind.TRAIN, training(keep_data_set(source), holdout={"dataset": other})))

    new = done(source, Kind.PRUNE, pruning(parent))

    assert new.holdout_data_set_id == other
    assert new.summary["holdout"] == new.summary["holdout"] | {"use": "validation", "n_rows": 4}


def test_pruning_by_training_rows_is_refused_with_the_reason(source: Sessions) -> None:
    data_set_id = keep_data_set(source)
    parent = keep(source, done(source, Kind.TRAIN, training(data_set_id)))

    outcome = failed(source, Kind.PRUNE, pruning(parent))

    assert outcome.code == "not_applicable"
    assert "trained on all rows" in outcome.message
    assert not outcome.retryable


def test_a_second_upload_of_the_training_rows_cannot_be_held_out(source: Sessions) -> None:
    data_set_id, again = (
        keep_data_set(source),
        keep_data_set(source, espalier.dataset_from_csv(PATIENTS, target="drug")),
    )
    parent = keep(source, done(source, Kind.TRAIN, training(data_set_id)))

    trained = failed(source, Kind.TRAIN, training(data_set_id, holdout={"dataset": again}))
    pruned = failed(source, Kind.PRUNE, pruning(parent, holdout={"dataset": again}))

    assert [fault["pointer"] for fault in trained.errors] == ["/holdout"]
    assert (pruned.code, "trained on" in pruned.message) == ("not_applicable", True)
    assert not trained.retryable
    assert not pruned.retryable


def comparison(data_set_id: str, **more: Any) -> dict[str, Any]:
    configs = {"stump": espalier.training_config("cart", max_depth=1), "tree": espalier.training_config("cart")}
    candidates = [{"name": name, "config": espalier.config_to_dict(config)} for name, config in configs.items()]
    plain = {"folds": 3, "holdout": None, "label_noise": 0.0, "seed": 5}
    return {"dataset": data_set_id, "candidates": candidates} | plain | more


def test_a_comparison_gives_what_the_core_gives_and_makes_no_version(source: Sessions) -> None:
    data_set_id = keep_data_set(source)

    outcome = perform(context(source), Kind.EVALUATE, comparison(data_set_id, label_noise=0.2))

    assert isinstance(outcome, dict)
    candidates = [
        espalier.Candidate("stump", espalier.training_config("cart", max_depth=1)),
        espalier.Candidate("tree", espalier.training_config("cart")),
    ]
    expected = espalier.compare(patients(), candidates, folds=3, seed=5, label_noise=0.2).to_dict()
    for ours, theirs in zip(outcome["candidates"], expected["candidates"], strict=True):
        assert ours.pop("seconds") > 0
        del theirs["seconds"]
    assert outcome == {"dataset": data_set_id, **expected}


def test_a_comparison_can_be_tested_on_another_data_set(source: Sessions) -> None:
    other = keep_data_set(source, espalier.dataset_from_csv(MORE, target="drug"), name="more")
    payload = comparison(keep_data_set(source), folds=None, holdout={"dataset": other})

    outcome = perform(context(source), Kind.EVALUATE, payload)

    assert isinstance(outcome, dict)
    tree = outcome["candidates"][1]
    # All four new patients are as those that were learned from: the tree knows them all.
    assert (outcome["folds"], tree["figures"]["accuracy"]["folds"]) == (1, [1.0])


def test_a_stopped_comparison_is_cancelled(source: Sessions) -> None:
    progress = espalier.Progress()
    progress.stop()

    outcome = perform(context(source, progress), Kind.EVALUATE, comparison(keep_data_set(source)))

    assert outcome == Cancelled()


def test_data_that_cannot_be_learned_from_fails_for_good(source: Sessions) -> None:
    without_target = keep_data_set(source, espalier.dataset_from_csv("a,b\n1,2\n3,4\n"))

    outcome = failed(source, Kind.TRAIN, training(without_target))

    assert outcome.code == "invalid_input"
    assert outcome.errors
    assert not outcome.retryable


def test_a_stopped_training_is_cancelled(source: Sessions) -> None:
    progress = espalier.Progress()
    progress.stop()

    outcome = perform(context(source, progress), Kind.TRAIN, training(keep_data_set(source)))

    assert outcome == Cancelled()


def test_without_a_database_the_job_is_given_back() -> None:
    engine = connect(Settings(database_url="postgresql+psycopg://nobody@127.0.0.1:1/none"))

    outcome = perform(context(sessions(engine)), Kind.TRAIN, training("any"))

    assert isinstance(outcome, Released)


def test_running_out_of_memory_is_worth_another_attempt(source: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*_: object) -> models.NewVersion:
        raise MemoryError

    monkeypatch.setattr(handlers, "HANDLERS", {Kind.TRAIN: greedy})

    outcome = failed(source, Kind.TRAIN, {})

    assert outcome.code == "out_of_memory"
    assert outcome.retryable


def test_the_figures_of_a_version_can_be_read_back(source: Sessions) -> None:
    kept = keep(source, done(source, Kind.TRAIN, training(keep_data_set(source))))

    with read_session(source) as session:
        found = models.find_version(session, "drugs")
        loaded = load_version(session, kept.id)
        rows = datasets.load_rows(session, found.data_set_id or "")

    answers = espalier.predict(loaded.model, [{**row, "drug": None} for row in rows])
    assert [answer.label for answer in answers] == [row["drug"] for row in rows]
