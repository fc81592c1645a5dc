"""What the service can be asked to do at once: plain functions over a session, without a word of HTTP.

Whoever calls opens and ends the transaction. What a worker does is asked for in `service.job_requests`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

import espalier
from service import aliases, catalog, decisions, storage
from service.errors import NotFound, TooLarge
from service.settings import Settings
from service.tables import DataSet

__all__ = [
    "CELL",
    "Answered",
    "NewDataSet",
    "check_cells",
    "check_size",
    "explain_decision",
    "find_loaded",
    "find_pointed_at",
    "predict",
    "redeclare_data_set",
    "upload_data_set",
]

CELL = "characters in one cell"


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
            TooLarge: More rows or columns, or a longer text, than the settings allow.
            Rejected: The name cannot be stored.
        """
        catalog.check_data_set_name(name)
        check_size("columns", given=len(dataset.columns), limit=settings.max_columns)
        check_size("rows", given=dataset.n_rows, limit=settings.max_rows)
        texts = (text for feature in dataset.schema.features for text in feature.categories if isinstance(text, str))
        check_size(CELL, given=max(map(len, texts), default=0), limit=settings.max_cell_chars)
        return cls(name, dataset, list(storage.encode(dataset)))


def check_size(what: str, *, given: int, limit: int) -> None:
    """Refuse more than the settings allow.

    Raises:
        TooLarge: `given` is above `limit`.
    """
    if given > limit:
        raise TooLarge(what=what, given=given, limit=limit)


def check_cells(rows: Sequence[Mapping[str, Any]], *, limit: int) -> None:
    """Refuse rows with a text that is longer than the settings allow.

    Raises:
        TooLarge: One is.
    """
    lengths = (
        len(value) for row in rows if isinstance(row, Mapping) for value in row.values() if isinstance(value, str)
    )
    check_size(CELL, given=max(lengths, default=0), limit=limit)


def upload_data_set(session: Session, new: NewDataSet) -> DataSet:
    """Store a data set: its declaration and its cells."""
    row = catalog.add_data_set(session, name=new.name, dataset=new.dataset)
    storage.save(session, row.id, list(new.chunks))
    return row


def redeclare_data_set(session: Session, data_set_id: str, new: NewDataSet, *, was: str) -> DataSet:
    """Store another declaration of the same rows, which had the fingerprint `was` when they were read.

    Raises:
        NotFound: There is no such data set.
        Conflict: It is used, or was changed meanwhile.
    """
    row = catalog.redeclare_data_set(session, data_set_id, dataset=new.dataset, was=was)
    storage.replace(session, data_set_id, new.chunks)
    return row


def find_loaded(session: Session, models: catalog.ModelCache, name: str, number: int) -> catalog.LoadedVersion:
    """Find a version that is to answer, decoded.

    Raises:
        NotFound: There is no such model or version.
    """
    return models.get(session, catalog.find_version(session, name, number).id)


def find_pointed_at(
    session: Session, models: catalog.ModelCache, pointers: aliases.AliasCache, name: str, alias: str | None
) -> tuple[catalog.LoadedVersion, str | None]:
    """Find the version that an alias points at, decoded; without one `production` answers, else the newest version.

    Returns:
        The version, and the alias that led to it, if one did.

    Raises:
        NotFound: There is no such model or alias.
    """
    asked = alias or aliases.DEFAULT
    version_id = pointers.find(session, name, asked)
    if version_id is not None:
        return models.get(session, version_id), asked
    newest = catalog.newest_version_id(session, name)
    if alias is not None:
        raise NotFound("alias", f"{name}/{alias}")
    return models.get(session, newest), None


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
