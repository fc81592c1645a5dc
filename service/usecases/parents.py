"""What a pruning starts from: a version, the method that is to take it, and the rows that vote."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import DataSet, Version
from service.errors import collect_faults, relocate
from service.usecases.holdouts import HeldOut, Learned, rows_of
from service.usecases.model_cache import ModelCache


@dataclass(frozen=True, slots=True)
class Parent:
    """A version that is to be pruned, decoded, and what it has learned from."""

    version: Version
    model: espalier.Model
    learned: Learned


def parent_of(session: Session, models: ModelCache, version: Version) -> Parent:
    """Give a version decoded, and what it has learned from."""
    model = models.get(session, version.id).model
    data_set = None if version.data_set_id is None else session.get(DataSet, version.data_set_id)
    return Parent(version, model, Learned(model.schema, model.training.fingerprint, data_set))


def faults_of_method(parent: Parent, method: Any, voting: DataSet | None, *, faults: Sequence[Fault]) -> list[Fault]:
    """Say why `method` cannot take the version; of rows that vote, if `faults` do not say they are unknown."""
    own: list[Fault] = []
    with collect_faults(own, relocate("/params", {"/method": "/method", "/holdout": "/holdout"})):
        espalier.check_pruning(
            parent.model,
            method,
            has_training_rows=parent.learned.data_set is not None,
            voters=None if voting is None else voting.fingerprint,
        )
    unknown = any(fault.path.startswith("/holdout") for fault in faults)
    return [fault for fault in own if not (unknown and fault.path == "/holdout")]


def faults_of_voters(session: Session, parent: Parent, method: Any, held_out: HeldOut) -> Iterator[Fault]:
    """Say why there would be no rows to ask but those that the version has learned from."""
    remembered, at_hand = parent.model.training.holdout, parent.learned.data_set is not None
    if held_out.rows is not None:
        if remembered is None:
            message = "this version was trained on all the rows of its data set: give the id of another data set"
            yield Fault("/holdout", "not_legal", message)
        elif not at_hand:
            message = "the data set that this version was trained on is gone: give the id of another data set"
            yield Fault("/holdout", "no_training_rows", message)
        elif held_out.rows != remembered:
            yield from _faults_of_learned(session, parent, held_out.rows, remembered)
    elif held_out.data_set is None and method is not None and espalier.needs_held_out(method):
        if remembered is None and parent.version.holdout_data_set_id is None:
            message = "this version was trained on all its rows and would be pruned on them: give a holdout"
            yield Fault("/holdout", "required", message)
        elif remembered is not None and not at_hand:
            message = "the rows that were set aside at training are gone with their data set: give another data set"
            yield Fault("/holdout", "no_training_rows", message)


def _faults_of_learned(
    session: Session, parent: Parent, asked: espalier.Holdout, remembered: espalier.Holdout
) -> Iterator[Fault]:
    if parent.learned.data_set is None:
        return
    try:
        _, rows = rows_of(session, asked, data_set=parent.learned.data_set)
    except espalier.ConfigError:  # said already, by `read_holdout`
        return
    _, aside = rows_of(session, remembered, data_set=parent.learned.data_set)
    learned = len(set(rows.tolist()) - set(aside.tolist()))
    if learned:
        message = f"{learned} of these {len(rows)} rows were learned from: name rows that were set aside at training"
        yield Fault("/holdout", "learned_from", message)
