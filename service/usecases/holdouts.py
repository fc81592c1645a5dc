"""Check the rows that a request holds out: rows of the data set, or another data set."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import DataSet
from service.errors import collect_faults, relocate
from service.repositories import datasets
from service.usecases.jobs import requested_data_set

FORMS = 'must be {"fraction": 0.3, "seed": 1, "stratified": true}, {"rows": [0, 5, …]} or {"dataset": "an id"}'


@dataclass(frozen=True, slots=True)
class TrainingSource:
    """What is learned from: its columns, and the data set if it is still there."""

    schema: espalier.Schema
    fingerprint: str
    data_set: DataSet | None

    @classmethod
    def of(cls, data_set: DataSet) -> "TrainingSource":
        """Return the source of a training on `data_set`."""
        return cls(espalier.Schema.from_dict(data_set.declared), data_set.fingerprint, data_set)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What a request holds out: `n_rows` of the rows that could be learned from, or a data set, or nothing."""

    rows: espalier.Holdout | None = None
    data_set: DataSet | None = None
    n_rows: int = 0

    @property
    def data_set_id(self) -> str | None:
        """The id of the data set that is held out, if it is one."""
        return None if self.data_set is None else self.data_set.id


def read_holdout(session: Session, given: object, *, source: TrainingSource | None, faults: list[Fault]) -> HeldOut:
    """Read the member `holdout` of a request, and check it against what is learned from."""
    if given is None:
        return HeldOut()
    if isinstance(given, Mapping) and "dataset" in given:
        return HeldOut(data_set=_read_data_set(session, given, source=source, faults=faults))
    if not isinstance(given, Mapping) or not given.keys() & {"fraction", "rows"}:
        faults.append(Fault("/holdout", "wrong_type", FORMS))
        return HeldOut()
    rows: espalier.Holdout | None = None
    n_rows = 0
    with collect_faults(faults, relocate("/holdout")):
        rows = espalier.holdout_from_dict(given)
        if source is not None and source.data_set is not None:
            n_rows = check_rows(session, rows, data_set=source.data_set, faults=faults)
    return HeldOut(rows=rows, n_rows=n_rows)


def check_rows(session: Session, holdout: espalier.Holdout, *, data_set: DataSet, faults: list[Fault]) -> int:
    """Check that rows of some weight are held out and others are left, and return how many are held out."""
    last = data_set.n_rows - 1
    if holdout.rows is not None and (max(holdout.rows) > last or len(holdout.rows) > last):
        faults.append(Fault("/holdout/rows", "out_of_range", f"must be some, not all, of the rows 0 to {last}"))
        return 0
    n_rows = 0
    if data_set.task is not None:
        with collect_faults(faults, relocate("/holdout")):
            targets, rows = held_out_rows(session, holdout, data_set=data_set)
            n_rows = len(rows)
            if not 0 < targets.take(rows).weight.sum() < targets.weight.sum():
                message = "must leave rows of some weight on both sides: held out and to learn from"
                faults.append(Fault("/holdout", "no_weight", message))
    return n_rows


def load_targets(session: Session, data_set: DataSet) -> espalier.Dataset:
    """Return the target and the weights of a data set, without its attributes."""
    return datasets.load_data_set(session, data_set.id, roles=(espalier.Role.TARGET, espalier.Role.WEIGHT))


def held_out_rows(
    session: Session, holdout: espalier.Holdout, *, data_set: DataSet
) -> tuple[espalier.Dataset, NDArray[np.intp]]:
    """Return the target and the weights of a data set, and the rows that `holdout` sets aside.

    Raises:
        espalier.ConfigError: None or all of the rows are set aside.
    """
    targets = load_targets(session, data_set)
    return targets, espalier.held_out_rows(holdout, targets)


def _read_data_set(
    session: Session, given: Mapping[str, object], *, source: TrainingSource | None, faults: list[Fault]
) -> DataSet | None:
    faults += [
        Fault(f"/holdout/{name}", "unknown_field", "beside dataset nothing else is legal")
        for name in given
        if name != "dataset"
    ]
    other = requested_data_set(session, given, at="/holdout", faults=faults)
    if source is not None and other is not None:
        faults += _incompatibilities(source, other)
    return other


def _incompatibilities(source: TrainingSource, other: DataSet) -> Iterator[Fault]:
    """Yield why what is learned from `source` cannot be measured on `other`."""
    if other.n_rows == 0:
        yield Fault("/holdout/dataset", "no_rows", "it has no rows")
    if other.fingerprint == source.fingerprint:
        message = "it has the rows that are learned from; held-out rows are rows that the model has not seen"
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
