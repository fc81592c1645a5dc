"""What is held out, checked at the request: rows of a data set, or another data set."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import DataSet
from service.errors import NotFound, collect_faults, relocate
from service.repositories import datasets

JUDGES = (espalier.Role.TARGET, espalier.Role.WEIGHT)
"""The columns that say which rows a holdout draws, and whether they count."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What is learned from: its columns, and the data set with its cells if that is still there."""

    schema: espalier.Schema
    fingerprint: str
    data_set: DataSet | None

    @classmethod
    def of(cls, data_set: DataSet) -> "Learned":
        """Give what a training on `data_set` learns from."""
        return cls(espalier.Schema.from_dict(data_set.declared), data_set.fingerprint, data_set)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What a request holds out: rows, so many of those that could be learned from, or a data set, or nothing."""

    rows: espalier.Holdout | None = None
    data_set: DataSet | None = None
    n_rows: int = 0

    @property
    def data_set_id(self) -> str | None:
        """The id of the data set that is held out, if it is one."""
        return None if self.data_set is None else self.data_set.id


def find_data_set(session: Session, data_set_id: object, *, pointer: str, faults: list[Fault]) -> DataSet | None:
    """Find a data set that a request names; where there is none, that is a fault at `pointer`."""
    try:
        return datasets.find_data_set(session, data_set_id if isinstance(data_set_id, str) else "")
    except NotFound:
        message = "there is no data set of this id; GET /v1/datasets lists them"
        faults.append(Fault(pointer, "unknown_data_set", message))
        return None


def read_holdout(session: Session, given: object, *, learned: Learned | None, faults: list[Fault]) -> HeldOut:
    """Read what a request holds out of what is learned from, and see whether that is possible."""
    if given is None:
        return HeldOut()
    if isinstance(given, Mapping) and "dataset" in given:
        return HeldOut(data_set=_read_data_set(session, given, learned=learned, faults=faults))
    if not isinstance(given, Mapping) or not given.keys() & {"fraction", "rows"}:
        legal = 'must be {"fraction": 0.3, "seed": 1, "stratified": true}, {"rows": [0, 5, …]} or {"dataset": "an id"}'
        faults.append(Fault("/holdout", "wrong_type", legal))
        return HeldOut()
    rows: espalier.Holdout | None = None
    n_rows = 0
    with collect_faults(faults, relocate("/holdout")):
        rows = espalier.holdout_from_dict(given)
        if learned is not None and learned.data_set is not None:
            n_rows = check_rows(session, rows, data_set=learned.data_set, faults=faults)
    return HeldOut(rows=rows, n_rows=n_rows)


def check_rows(session: Session, holdout: espalier.Holdout, *, data_set: DataSet, faults: list[Fault]) -> int:
    """See whether some rows are held out and some are left, both of some weight; give how many are held out."""
    last = data_set.n_rows - 1
    if holdout.rows is not None and (max(holdout.rows) > last or len(holdout.rows) > last):
        faults.append(Fault("/holdout/rows", "out_of_range", f"must be some, not all, of the rows 0 to {last}"))
        return 0
    n_rows = 0
    if data_set.task is not None:
        with collect_faults(faults, relocate("/holdout")):
            judges, rows = rows_of(session, holdout, data_set=data_set)
            n_rows = len(rows)
            if not 0 < judges.take(rows).weight.sum() < judges.weight.sum():
                message = "must leave rows of some weight on both sides: held out and to learn from"
                faults.append(Fault("/holdout", "no_weight", message))
    return n_rows


def load_judges(session: Session, data_set: DataSet) -> espalier.Dataset:
    """Load the target and the weights of a data set, and no attribute."""
    return datasets.load_data_set(session, data_set.id, roles=JUDGES)


def rows_of(
    session: Session, holdout: espalier.Holdout, *, data_set: DataSet
) -> tuple[espalier.Dataset, NDArray[np.intp]]:
    """Give the target and the weights of a data set, and the rows that `holdout` sets aside.

    Raises:
        espalier.ConfigError: None, or all of the rows.
    """
    judges = load_judges(session, data_set)
    return judges, espalier.held_out_rows(holdout, judges)


def _read_data_set(
    session: Session, given: Mapping[str, object], *, learned: Learned | None, faults: list[Fault]
) -> DataSet | None:
    faults += [
        Fault(f"/holdout/{name}", "unknown_field", "beside dataset nothing else is legal")
        for name in given
        if name != "dataset"
    ]
    other = find_data_set(session, given["dataset"], pointer="/holdout/dataset", faults=faults)
    if learned is not None and other is not None:
        faults += _differences(learned, other)
    return other


def _differences(learned: Learned, other: DataSet) -> Iterator[Fault]:
    """Say why rows of `other` cannot be held against what is learned."""
    if other.n_rows == 0:
        yield Fault("/holdout/dataset", "no_rows", "it has no rows")
    if other.fingerprint == learned.fingerprint:
        message = "it has the rows that are learned from; held-out rows are rows that the model has not seen"
        yield Fault("/holdout/dataset", "not_legal", message)
    theirs = {feature.name: feature for feature in espalier.Schema.from_dict(other.declared).features}
    roles = (espalier.Role.ATTRIBUTE, espalier.Role.TARGET)
    asked = [feature for feature in learned.schema.features if feature.role in roles]
    for feature in sorted(asked, key=lambda one: one.name):
        match = theirs.get(feature.name)
        if match is None:
            yield Fault("/holdout/dataset", "missing_column", f"it has no column {feature.name!r}")
        elif not espalier.is_compatible(match, feature) or (
            feature.role is espalier.Role.TARGET and match.coded != feature.coded
        ):
            message = f"its column {feature.name!r} is {match.kind}, and must be {feature.kind}"
            yield Fault("/holdout/dataset", "kind", message)
