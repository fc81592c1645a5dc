"""What the service can be asked to do: plain functions over a session, without a word of HTTP.

Whoever calls opens and ends the transaction. What can be known to be wrong is said now, to the one who asks, and not
later by a worker: configurations, pruning methods and holdouts are read by the core's own parsers here.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

import espalier
from service import catalog, decisions, queue, storage
from service.errors import Fault, NotFound, Rejected, TooLarge
from service.settings import Settings
from service.tables import DataSet, Job, Kind, Version

__all__ = [
    "Answered",
    "NewDataSet",
    "check_size",
    "explain_decision",
    "find_loaded",
    "predict",
    "request_pruning",
    "request_training",
    "upload_data_set",
]

# Where a fault that the core finds in configuration and schema together sits in a request for training; the rest is a
# field of the configuration.
PLACES_IN_TRAINING = {"/target": "/dataset", "/attributes": "/dataset", "/preset": "/preset"}
# Where a pruning method says "validation" if it asks rows that were held out.
VALIDATION_FIELDS = ("select", "estimate")


@dataclass(frozen=True, slots=True)
class NewDataSet:
    """A data set that was read and packed, but is not stored yet."""

    name: str
    dataset: espalier.Dataset
    chunks: Sequence[storage.Chunk]

    @classmethod
    def of(cls, dataset: espalier.Dataset, *, name: str, settings: Settings) -> "NewDataSet":
        """Check the size and pack the cells: the long part, done before a transaction begins.

        Raises:
            TooLarge: More rows or columns than the settings allow.
            Rejected: The name cannot be stored.
        """
        catalog.check_data_set_name(name)
        check_size("columns", given=len(dataset.columns), limit=settings.max_columns)
        check_size("rows", given=dataset.n_rows, limit=settings.max_rows)
        return cls(name, dataset, list(storage.encode(dataset)))


def check_size(what: str, *, given: int, limit: int) -> None:
    """Refuse more than the settings allow.

    Raises:
        TooLarge: `given` is above `limit`.
    """
    if given > limit:
        raise TooLarge(what=what, given=given, limit=limit)


def upload_data_set(session: Session, new: NewDataSet) -> DataSet:
    """Store a data set: its declaration and its cells."""
    row = catalog.add_data_set(session, name=new.name, dataset=new.dataset)
    storage.save(session, row.id, list(new.chunks))
    return row


def request_training(session: Session, asked: Mapping[str, Any], *, settings: Settings) -> Job:
    """Queue a training.

    Args:
        session: Of a transaction for writing.
        asked: ``model, dataset, preset, params, holdout``, as `schemas.TrainingJobRequest` gives them.
        settings: For the number of attempts.

    Raises:
        Rejected: No such data set, preset, field or combination; every fault, by its place in the request.
    """
    faults: list[Fault] = []
    data_set = _data_set(session, asked["dataset"], pointer="/dataset", faults=faults)
    config: espalier.TrainingConfig | None = None
    params = _without("preset", asked["params"], faults=faults)
    with _collected(faults, below="/params", elsewhere=PLACES_IN_TRAINING):
        config = espalier.training_config(asked["preset"], **params)
    if data_set is not None and config is not None:
        with _collected(faults, below="/params", elsewhere=PLACES_IN_TRAINING):
            espalier.check_training(espalier.Schema.from_dict(data_set.declared), config)
    holdout_id = _check_holdout(session, asked["holdout"], data_set=data_set, faults=faults)
    if faults or data_set is None or config is None:
        raise Rejected(faults)
    payload = queue.TrainingPayload(
        model=asked["model"],
        dataset=data_set.id,
        preset=asked["preset"],
        config=espalier.config_to_dict(config),
        holdout=asked["holdout"],
    )
    return queue.enqueue(
        session,
        kind=Kind.TRAIN,
        payload=dict(payload),
        max_attempts=settings.job_attempts,
        model=asked["model"],
        data_set_id=data_set.id,
        holdout_data_set_id=holdout_id,
    )


def request_pruning(session: Session, asked: Mapping[str, Any], *, settings: Settings) -> Job:
    """Queue a pruning of a version into a new one.

    Args:
        session: Of a transaction for writing.
        asked: ``model, version, method, params, holdout``, as `schemas.PruningJobRequest` gives them.
        settings: For the number of attempts.

    Raises:
        Rejected: No such model, version, method, parameter or data set; every fault, by its place in the request.
    """
    faults: list[Fault] = []
    version = _version(session, asked["model"], asked["version"], faults=faults)
    params = _without("method", asked["params"], faults=faults)
    method: Any = None
    with _collected(faults, below="/params", elsewhere={"/method": "/method"}):
        method = espalier.pruning_method(asked["method"], **params)
    data_set = None if version is None or version.data_set_id is None else session.get(DataSet, version.data_set_id)
    holdout_id = _check_holdout(session, asked["holdout"], data_set=data_set, faults=faults)
    if version is not None:
        faults += _faults_of_voters(version, method, asked["holdout"])
    if faults or version is None:
        raise Rejected(faults)
    payload = queue.PruningPayload(
        model=version.model.name,
        version=version.number,
        version_id=version.id,
        method=asked["method"],
        params=dict(asked["params"]),
        holdout=asked["holdout"],
    )
    return queue.enqueue(
        session,
        kind=Kind.PRUNE,
        payload=dict(payload),
        max_attempts=settings.job_attempts,
        model=version.model.name,
        data_set_id=version.data_set_id,
        holdout_data_set_id=holdout_id or version.holdout_data_set_id,
    )


def find_loaded(session: Session, models: catalog.ModelCache, name: str, number: int | None) -> catalog.LoadedVersion:
    """Find the version that is to answer, decoded: the newest one without a number.

    Raises:
        NotFound: There is no such model or version.
    """
    if number is None:
        return models.get(session, catalog.newest_version_id(session, name))
    return models.get(session, catalog.find_version(session, name, number).id)


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers to the rows of one request, before they are logged."""

    answers: list[dict[str, Any]]
    nodes: list[tuple[int, ...]]


def predict(version: catalog.LoadedVersion, rows: Sequence[Mapping[str, Any]], *, explain: str) -> Answered:
    """Answer `rows`, with as much explanation as is asked for: ``none``, ``path`` or ``full``.

    Raises:
        espalier.RowError: Rows that the model cannot take; every fault, by row and attribute.
    """
    if explain == "none":
        plain = espalier.predict(version.model, rows)
        return Answered([one.to_dict() for one in plain], [one.nodes for one in plain])
    explained = espalier.explain(version.model, rows, detail=explain)
    return Answered([one.to_dict() for one in explained], [one.prediction.nodes for one in explained])


def explain_decision(
    session: Session, models: catalog.ModelCache, decision_id: str
) -> tuple[decisions.Decision, decisions.Replay]:
    """Answer a logged row again by the version that answered it, and compare.

    Raises:
        NotFound: There is no such decision.
    """
    decision = decisions.find(session, decision_id)
    return decision, decisions.replay(models.get(session, decision.version_id), decision)


# --- faults, gathered from all parts of a request before one is raised


@contextmanager
def _collected(faults: list[Fault], *, below: str, elsewhere: Mapping[str, str]) -> Iterator[None]:
    """Turn what the core finds into faults of the request: by its place `elsewhere`, or else `below` a member."""
    try:
        yield
    except espalier.InvalidInput as error:
        faults += [
            Fault(elsewhere.get(fault.path, below + fault.path), fault.code, fault.message) for fault in error.faults
        ]


def _without(name: str, params: Mapping[str, Any], *, faults: list[Fault]) -> dict[str, Any]:
    """Refuse `name` among the parameters: it has its own place in the request."""
    if name in params:
        faults.append(Fault(f"/params/{name}", "unknown_field", f"the {name} is given beside params, not in them"))
    return {key: value for key, value in params.items() if key != name}


def _data_set(session: Session, data_set_id: object, *, pointer: str, faults: list[Fault]) -> DataSet | None:
    try:
        return catalog.find_data_set(session, data_set_id if isinstance(data_set_id, str) else "")
    except NotFound:
        faults.append(
            Fault(pointer, "unknown_data_set", "there is no data set of this id; GET /v1/datasets lists them")
        )
        return None


def _version(session: Session, name: str, number: int | None, *, faults: list[Fault]) -> Version | None:
    try:
        return catalog.find_version(session, name, number)
    except NotFound as error:
        unknown_model = Fault("/model", "unknown_model", "there is no model of this name; GET /v1/models lists them")
        unknown_version = Fault("/version", "unknown_version", "the model has no such version")
        faults.append(unknown_model if error.kind == "model" else unknown_version)
        return None


def _check_holdout(session: Session, holdout: object, *, data_set: DataSet | None, faults: list[Fault]) -> str | None:
    """Give the id of the held-out data set, if it is one of its own."""
    if holdout is None:
        return None
    if isinstance(holdout, Mapping) and "dataset" in holdout:
        faults += [
            Fault(f"/holdout/{name}", "unknown_field", "beside dataset nothing else is legal")
            for name in holdout
            if name != "dataset"
        ]
        other = _data_set(session, holdout["dataset"], pointer="/holdout/dataset", faults=faults)
        if data_set is not None and other is not None:
            faults += _differences(data_set, other)
        return None if other is None else other.id
    with _collected(faults, below="/holdout", elsewhere={}):
        rows = espalier.holdout_from_dict(holdout).rows  # type: ignore[arg-type] # it says so if it is no mapping
        n_rows = data_set.n_rows if data_set is not None else None
        if rows is not None and n_rows is not None and (not rows or max(rows) >= n_rows or len(rows) >= n_rows):
            message = f"must be some, not all, of the rows 0 to {n_rows - 1}"
            faults.append(Fault("/holdout/rows", "out_of_range", message))
    return None


def _differences(data_set: DataSet, other: DataSet) -> list[Fault]:
    mine, theirs = ({column["name"] for column in row.declared["columns"]} for row in (data_set, other))
    return [Fault("/holdout/dataset", "missing_column", f"it has no column {name!r}") for name in sorted(mine - theirs)]


def _faults_of_voters(version: Version, method: object, holdout: object) -> Iterator[Fault]:
    """Say why a method would have no rows to ask but those that the version has learned from."""
    asks = isinstance(method, espalier.ReducedError) or any(
        getattr(method, field, None) == "validation" for field in VALIDATION_FIELDS
    )
    learned_from_all = version.summary["n_training_rows"] == version.summary["n_rows"]
    if holdout is None:
        if asks and learned_from_all and version.holdout_data_set_id is None:
            message = "this version was trained on all its rows and would be pruned on them: give a holdout"
            yield Fault("/holdout", "required", message)
    elif learned_from_all and isinstance(holdout, Mapping) and "dataset" not in holdout:
        message = "this version was trained on all the rows of its data set: give the id of another data set"
        yield Fault("/holdout", "not_legal", message)
