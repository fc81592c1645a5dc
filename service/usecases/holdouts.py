"""Check the holdout of a request: rows of the data set, or another data set."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import DataSet
from service.repositories import datasets
from service.usecases.jobs import JobRequest

FORMS = 'must be {"fraction": 0.3, "seed": 1, "stratified": true}, {"rows": [0, 5, …]} or {"dataset": "an id"}'


@dataclass(frozen=True, slots=True)
class TrainingSource:
    """The schema and fingerprint of the training data, and the data set unless it was deleted."""

    schema: espalier.Schema
    fingerprint: str
    data_set: DataSet | None

    @classmethod
    def of(cls, data_set: DataSet) -> "TrainingSource":
        """Return the source of a training on `data_set`."""
        return cls(espalier.Schema.from_dict(data_set.declared), data_set.fingerprint, data_set)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The holdout of a request: `n_rows` rows of the training data, another data set, or nothing."""

    rows: espalier.Holdout | None = None
    data_set: DataSet | None = None
    n_rows: int = 0

    @property
    def data_set_id(self) -> str | None:
        """The id of the data set that is held out, if there is one."""
        return None if self.data_set is None else self.data_set.id


def read_holdout(request: JobRequest, source: TrainingSource | None) -> HeldOut:
    """Read the member `holdout` of a request, and check it against the training data."""
    given = request.members.get("holdout")
    if given is None:
        return HeldOut()
    if isinstance(given, Mapping) and "dataset" in given:
        return HeldOut(data_set=_read_data_set(request, given, source))
    if not isinstance(given, Mapping) or not given.keys() & {"fraction", "rows"}:
        request.fault("/holdout", "wrong_type", FORMS)
        return HeldOut()
    rows: espalier.Holdout | None = None
    n_rows = 0
    with request.collecting("/holdout"):
        rows = espalier.holdout_from_dict(given)
        if source is not None and source.data_set is not None:
            n_rows = check_rows(request, rows, source.data_set)
    return HeldOut(rows=rows, n_rows=n_rows)


def check_rows(request: JobRequest, holdout: espalier.Holdout, data_set: DataSet) -> int:
    """Check that both the rows held out and the others have some weight; return how many are held out."""
    last = data_set.n_rows - 1
    if holdout.rows is not None and (max(holdout.rows) > last or len(holdout.rows) > last):
        request.fault("/holdout/rows", "out_of_range", f"must be some, not all, of the rows 0 to {last}")
        return 0
    n_rows = 0
    if data_set.task is not None:
        with request.collecting("/holdout"):
            targets, rows = held_out_rows(request.session, holdout, data_set)
            n_rows = len(rows)
            if not 0 < targets.take(rows).weight.sum() < targets.weight.sum():
                message = "must leave rows of some weight on both sides: held out and to learn from"
                request.fault("/holdout", "no_weight", message)
    return n_rows


def load_targets(session: Session, data_set: DataSet) -> espalier.Dataset:
    """Return the target and the weights of a data set, without its attributes."""
    return datasets.load_data_set(session, data_set.id, roles=(espalier.Role.TARGET, espalier.Role.WEIGHT))


def held_out_rows(
    session: Session, holdout: espalier.Holdout, data_set: DataSet
) -> tuple[espalier.Dataset, NDArray[np.intp]]:
    """Return the target and the weights of a data set, and the rows that `holdout` sets aside."""
    targets = load_targets(session, data_set)
    return targets, espalier.held_out_rows(holdout, targets)


def _read_data_set(request: JobRequest, given: Mapping[str, object], source: TrainingSource | None) -> DataSet | None:
    for name in (name for name in given if name != "dataset"):
        request.fault(f"/holdout/{name}", "unknown_field", "is not legal beside dataset")
    other = request.data_set("/holdout")
    if source is not None and other is not None:
        request.faults.extend(_incompatibilities(source, other))
    return other


def _incompatibilities(source: TrainingSource, other: DataSet) -> Iterator[Fault]:
    """Yield why a model trained on `source` cannot be evaluated on `other`."""
    if other.n_rows == 0:
        yield Fault("/holdout/dataset", "no_rows", "it has no rows")
    if other.fingerprint == source.fingerprint:
        message = "it has the training rows; held-out rows are rows that the model has not seen"
        yield Fault("/holdout/dataset", "not_legal", message)
    theirs = {feature.name: feature for feature in espalier.Schema.from_dict(other.declared).features}
    needed = [one for one in source.schema.features if one.role in (espalier.Role.ATTRIBUTE, espalier.Role.TARGET)]
    for feature in sorted(needed, key=lambda one: one.name):
        match = theirs.get(feature.name)
        if match is None:
            yield Fault("/holdout/dataset", "missing_column", f"it has no column {feature.name!r}")
        elif not espalier.is_compatible(match, feature) or (
            feature.role is espalier.Role.TARGET and match.coded != feature.coded
        ):
            message = f"its column {feature.name!r} is {match.kind}, and must be {feature.kind}"
            yield Fault("/holdout/dataset", "kind", message)
