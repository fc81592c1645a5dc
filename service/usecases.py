"""What the service can be asked to do at once: plain functions over a session, without a word of HTTP.

Whoever calls opens and ends the transaction. What a worker does is asked for in `service.job_requests`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

import espalier
from service import aliases, catalog, decisions, replays, storage
from service.database.tables import DataSet
from service.errors import Conflict, Fault, NotFound, Rejected, TooLarge
from service.model_cache import ModelCache
from service.settings import Settings
from service.staging import StagedDataSet, TableInChunks

__all__ = [
    "CELL",
    "Answered",
    "NewDataSet",
    "check_cells",
    "check_explaining",
    "check_paths",
    "check_size",
    "explain_decision",
    "find_loaded",
    "find_pointed_at",
    "predict",
    "predict_each",
    "read_document",
    "reading_of",
    "redeclare_data_set",
    "rows_at_once",
    "upload_data_set",
]

CELL = "characters in one cell"
FAULTS_A_ROW = 20  # shown of a row that is refused while the others are answered


@dataclass(frozen=True, slots=True)
class NewDataSet:
    """A data set that was read, but is not stored yet."""

    name: str
    staged: StagedDataSet | TableInChunks

    @classmethod
    def of(cls, dataset: espalier.Dataset, *, name: str, settings: Settings) -> "NewDataSet":
        """Check the size, before a transaction begins.

        Raises:
            TooLarge: More rows or columns, or a longer text, than the settings allow.
            Rejected: The name cannot be stored.
        """
        catalog.check_data_set_name(name)
        _check_columns(dataset.schema, settings)
        check_size("rows", given=dataset.n_rows, limit=settings.max_rows)
        return cls(name, TableInChunks.of(dataset))


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


def check_explaining(model: espalier.Model, n_rows: int, *, explain: str, limit: int) -> None:
    """Refuse more of `full` than the settings allow: each row is a look at every node, or at every rule.

    Raises:
        TooLarge: There are more rows times nodes.
    """
    if explain == "full":
        n_nodes = model.rules.n_rules + 1 if isinstance(model.body, espalier.RuleList) else model.tree.n_nodes
        check_size("rows times nodes (explain: full)", given=n_rows * n_nodes, limit=limit)


def check_paths(model: espalier.Model, n_rows: int, *, explain: str, limit: int) -> None:
    """Refuse paths of more nodes than the settings allow: all of an answer is in memory before it is sent.

    Raises:
        TooLarge: There are more rows times levels.
    """
    # Only a tree of so many nodes may have such paths: of others it is not asked how deep they are.
    if explain == "path" and not isinstance(model.body, espalier.RuleList) and n_rows * model.tree.n_nodes > limit:
        check_size("rows times levels (explain: path)", given=n_rows * model.tree.depth, limit=limit)


def rows_at_once(model: espalier.Model, most: int, *, explain: str, limit: int) -> int:
    """Give how many rows of a stream may be answered together, at most `most`: their paths are in memory together."""
    if explain == "none" or isinstance(model.body, espalier.RuleList):
        return most
    n_ways = min(espalier.MOST_VISITS, model.tree.n_leaves)
    if most * model.tree.n_nodes * n_ways <= limit:
        return most
    return max(1, min(most, limit // max(1, model.tree.depth * n_ways)))


def upload_data_set(session: Session, new: NewDataSet) -> DataSet:
    """Store a data set: its declaration and its cells."""
    row = catalog.add_data_set(session, name=new.name, dataset=new.staged)
    storage.save(session, row.id, new.staged.chunks())
    row.fingerprint = new.staged.fingerprint
    return row


def read_document(content: bytes, *, name: str, settings: Settings) -> catalog.NewVersion:
    """Read a model document, taking nothing on trust, into a version that is not stored yet.

    What is kept is the canonical form, so that a document that came from here has the same SHA-256 again.

    Raises:
        espalier.DocumentError: It is not a model document; what is wrong, and where.
        TooLarge: More nodes or conditions, more columns or a longer text than the settings allow.
    """
    model = espalier.from_json(content)
    _check_columns(model.schema, settings)
    sizes = espalier.summary(model)
    check_size("nodes", given=sizes.get("n_nodes") or 0, limit=settings.max_nodes)
    if isinstance(model.body, espalier.RuleList):
        n_conditions = sum(len(rule.conditions) + 1 for rule in model.body.rules)
        check_size("rules and conditions", given=n_conditions, limit=settings.max_nodes)
    return catalog.NewVersion(
        model=name, document=espalier.to_json(model), preset=model.config.preset, summary=sizes, seconds=0.0
    )


def _check_columns(schema: espalier.Schema, settings: Settings) -> None:
    check_size("columns", given=len(schema.features), limit=settings.max_columns)
    texts = (text for feature in schema.features for text in feature.categories if isinstance(text, str))
    check_size(CELL, given=max(map(len, texts), default=0), limit=settings.max_cell_chars)


def redeclare_data_set(session: Session, data_set_id: str, new: NewDataSet, *, was: str) -> DataSet:
    """Store another declaration of the same rows, which had the fingerprint `was` when they were read.

    Raises:
        NotFound: There is no such data set.
        Conflict: It is used, or was changed meanwhile.
    """
    row = catalog.redeclare_data_set(session, data_set_id, dataset=new.staged, was=was)
    storage.replace(session, data_set_id, new.staged.chunks())
    row.fingerprint = new.staged.fingerprint
    return row


def find_loaded(session: Session, models: ModelCache, name: str, number: int) -> catalog.LoadedVersion:
    """Find a version that is to answer, decoded.

    Raises:
        NotFound: There is no such model or version.
    """
    return models.get(session, catalog.find_version(session, name, number).id)


def find_pointed_at(
    session: Session, models: ModelCache, pointers: aliases.AliasCache, name: str, alias: str | None
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

    def add(self, one: "espalier.Prediction | espalier.Explanation") -> None:
        """Add the answer to a row."""
        self.answers.append(one.to_dict())
        self.nodes.append(one.nodes if isinstance(one, espalier.Prediction) else one.prediction.nodes)

    def add_refused(self, faults: Sequence[espalier.Fault]) -> None:
        """Add what is said of a row that cannot be answered."""
        shown = [{"pointer": one.path, "code": one.code, "message": one.message} for one in faults[:FAULTS_A_ROW]]
        self.answers.append({"errors": shown})
        self.nodes.append(())


def predict(
    version: catalog.LoadedVersion,
    rows: Sequence[Mapping[str, Any]],
    *,
    explain: str,
    missing: str | None = None,
    limit: int | None = None,
) -> Answered:
    """Answer `rows`.

    Args:
        version: The version that answers.
        rows: The rows as they were given.
        explain: How much explanation is asked for: ``none``, ``path`` or ``full``.
        missing: What is done where a value is missing; None: as in training.
        limit: Steps that the paths of rows that go several ways may have together.

    Raises:
        espalier.TooLarge: They have more.
        espalier.RowError: Rows that the model cannot take; every fault, by row and attribute.
        Rejected: The model cannot take missing values in this way.
    """
    answered = Answered([], [])
    with _strategy_refused():
        for one in (
            espalier.predict(version.model, rows, missing=missing)
            if explain == "none"
            else espalier.explain(version.model, rows, detail=explain, missing=missing, most_steps=limit)
        ):
            answered.add(one)
    return answered


def predict_each(
    version: catalog.LoadedVersion,
    rows: Sequence[Mapping[str, Any]],
    *,
    explain: str,
    missing: str | None,
    place: Callable[[int, str], str],
    limit: int | None = None,
) -> Answered:
    """Answer the rows that can be answered; of the others, say what is wrong with them.

    Args:
        version: The version that answers.
        rows: The rows as they were given.
        explain: As in `predict`.
        missing: As in `predict`.
        place: Gives the JSON pointer of a fault in the request from the row's number and the pointer within the row.
        limit: As in `predict`.

    Raises:
        espalier.TooLarge: As in `predict`.
        Rejected: As in `predict`.
    """
    answered = Answered([], [])
    with _strategy_refused():
        for number, one in enumerate(
            espalier.predict_each(version.model, rows, missing=missing)
            if explain == "none"
            else espalier.explain_each(version.model, rows, detail=explain, missing=missing, most_steps=limit)
        ):
            if isinstance(one, espalier.RowError):
                faults = [espalier.Fault(place(number, each.path), each.code, each.message) for each in one.faults]
                answered.add_refused(faults)
            else:
                answered.add(one)
    return answered


def reading_of(version: catalog.LoadedVersion, missing: str | None) -> espalier.Model:
    """Give the model of a version, as it takes missing values by this strategy.

    Raises:
        Rejected: It cannot.
    """
    with _strategy_refused():
        return espalier.answering_with(version.model, missing)


@contextmanager
def _strategy_refused() -> Iterator[None]:
    """Say of a strategy for missing values that the model cannot take what is said of any other field of a request."""
    try:
        yield
    except espalier.ConfigError as error:
        raise Rejected([Fault(fault.path, fault.code, fault.message) for fault in error.faults]) from None


def explain_decision(
    session: Session, models: ModelCache, decision_id: str
) -> tuple[decisions.Decision, replays.Replay]:
    """Answer a logged row again by the version that answered it, and compare.

    Raises:
        NotFound: There is no such decision.
        Conflict: The row was refused: there is no answer that could be explained.
    """
    decision = decisions.find(session, decision_id)
    if decision.leaf is None:
        raise Conflict(f"decision {decision_id} is a row that was refused: its errors stand in the decision itself")
    return decision, replays.replay(models.get(session, decision.version_id), decision)
