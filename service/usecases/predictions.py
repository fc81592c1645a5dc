"""Answer rows, or a table of rows, with a version: every decision is logged before its answer is returned.

A request with a row that cannot be read is refused as a whole, unless such rows are skipped. It is logged all the same:
an invalid row with its faults, the others as not answered.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import espalier
from service.errors import ValidationFailed
from service.metrics import Metrics
from service.repositories import decisions, models
from service.repositories.decision_log import DecisionLog
from service.serialization.answer_rows import TableBatch
from service.serialization.table_records import table_record
from service.settings import Settings
from service.usecases.limits import CELL, check_size
from service.usecases.version_resolver import ResolvedVersion

MAX_FAULTS_A_ROW: Final = 20
"""Shown of a row that is skipped or logged."""
NOT_ANSWERED: Final = {
    "pointer": "",
    "code": "not_answered",
    "message": "the request was refused for another of its rows",
}

Pointer = Callable[[int, str], str]
"""Returns the JSON pointer in a request from the number of a row and the pointer within the row."""
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PredictionOptions:
    """How rows are answered.

    Attributes:
        explain: ``none``, ``path`` or ``full``.
        missing: The strategy for missing values; None: the one of the training.
        skip: Whether rows that cannot be read are passed over, instead of refusing the request.
        subject: Whom the decisions are about.
    """

    explain: str = "path"
    missing: str | None = None
    skip: bool = False
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Recorder:
    """Logs and counts the answers of one process.

    Attributes:
        settings: Limits; whether answers are counted.
        log: The decision log.
        metrics: The counters.
        logging: ``durable``, ``best_effort`` or ``off``, as `Settings.decisions`.
    """

    settings: Settings
    log: DecisionLog
    metrics: Metrics
    logging: str

    def waiting(self) -> "Recorder":
        """Return a recorder that waits for each commit, unless nothing is logged: it bounds the records in memory."""
        return replace(self, logging="durable") if self.logging == "best_effort" else self

    def record(self, version: models.LoadedVersion, entry: dict[str, Any] | None, labels: Mapping[str, int]) -> None:
        """Log a record, if there is one, and count the answers by label.

        Raises:
            As `DecisionLog.append`.
        """
        is_counted = self.settings.metrics == "on"
        if entry is not None:
            began = time.perf_counter()
            (self.log.append if self.logging == "durable" else self.log.submit)(entry)
            if is_counted:
                self.metrics.commit(time.perf_counter() - began, n_waiting=self.log.n_waiting)
        if is_counted:
            for label, n_rows in labels.items():
                self.metrics.predictions(version.model_name, version.number, label, n_rows)


def answer_rows(
    resolved: ResolvedVersion,
    rows: Sequence[Mapping[str, Any]],
    options: PredictionOptions,
    *,
    recorder: Recorder,
    key_id: str | None,
    began: float,
    pointer: Pointer,
) -> list[Answer]:
    """Answer rows one by one, and log them as one record.

    Args:
        resolved: The version.
        rows: Attribute names and values, as they were given.
        options: How they are answered.
        recorder: Where they are logged.
        key_id: The key of the caller.
        began: `time.perf_counter()` when the request arrived.
        pointer: The place of a fault in the request.

    Returns:
        The JSON form of each answer, with its ``decision_id``; of a skipped row its ``errors``.

    Raises:
        espalier.RowError: Rows that the model cannot take; every fault.
        ValidationFailed: The model cannot handle missing values in this way.
        TooLarge: The paths of the rows have more steps than the settings allow.
        LimitExceeded: The log takes no more records.
        Unavailable: The database cannot be reached or written now.
        Conflict: The version was deleted meanwhile.
    """
    faults: list[espalier.Fault] = []
    error: Exception | None = None
    try:
        found = _predicted(resolved, rows, options, max_steps=recorder.settings.max_full_nodes)
        answers = [_answer(one, number, pointer, faults) for number, one in enumerate(found)]
        nodes = [_nodes(one) for one in found]
    except ValidationFailed as refused:
        error, faults = refused, list(refused.faults)
        answers, nodes = [_errors(faults) for _ in rows], [()] * len(rows)
    if faults and error is None and not options.skip:
        error = espalier.RowError(faults)
        answers = [{"errors": answer.get("errors", [NOT_ANSWERED])} for answer in answers]
        nodes = [()] * len(rows)
    entry, ids = None, [None] * len(rows)  # type: tuple[dict[str, Any] | None, Sequence[str | None]]
    if recorder.logging != "off":
        entry = decisions.row_record(
            record_context(resolved, options, key_id=key_id),
            attributes=resolved.version.attributes - resolved.settings.mask,
            inputs=rows,
            answers=answers,
            nodes=nodes,
            milliseconds=(time.perf_counter() - began) * 1000,
        )
        ids = decisions.decision_ids(entry["id"], len(rows))
    recorder.record(resolved.version, entry, Counter(map(decisions.label_of, answers)))
    if error is not None:
        raise error
    return [{"decision_id": decision_id, **answer} for decision_id, answer in zip(ids, answers, strict=True)]


def answer_table(
    resolved: ResolvedVersion,
    table: espalier.Dataset,
    options: PredictionOptions,
    *,
    recorder: Recorder,
    key_id: str | None,
    began: float,
    first_row: int = 0,
) -> TableBatch:
    """Answer the rows of a table together, without their paths, and log them as one packed record.

    Args:
        resolved: The version.
        table: Attributes of the version; other columns are left out.
        options: How the rows are answered.
        recorder: Where they are logged; waits for the commit even where others do not.
        key_id: The key of the caller.
        began: `time.perf_counter()` when the rows arrived.
        first_row: The number of the first row in the whole request.

    Raises:
        As `answer_rows`, but no RowError.
    """
    model = with_strategy(resolved.version.model, options.missing)
    answers = espalier.predict_table(model, table)
    rows = table_record(model, table, answers, erased=resolved.settings.mask, rules=options.explain != "none")
    entry = None
    if recorder.logging != "off":
        context, content = record_context(resolved, options, key_id=key_id), rows.to_bytes()
        milliseconds = (time.perf_counter() - began) * 1000
        entry = decisions.table_record(context, n_rows=rows.n_rows, content=content, milliseconds=milliseconds)
    recorder.waiting().record(resolved.version, entry, rows.label_counts())
    return TableBatch(first_row, "" if entry is None else entry["id"], rows)


def with_strategy(model: espalier.Model, missing: str | None) -> espalier.Model:
    """Return the model that handles missing values by this strategy.

    Raises:
        ValidationFailed: It cannot.
    """
    with _config_refused():
        return espalier.with_missing_strategy(model, missing)


def record_context(
    resolved: ResolvedVersion, options: PredictionOptions, *, key_id: str | None
) -> decisions.RecordContext:
    """Return what the log says of all rows of a record."""
    version, settings = resolved.version, resolved.settings
    return decisions.RecordContext(
        version_id=version.id,
        document_sha256=version.document_sha256,
        missing=options.missing or version.model.config.missing,
        alias=resolved.alias,
        subject=options.subject,
        key_id=key_id,
        masked=settings.masked(version.attributes),
        operating_point=settings.operating_point,
    )


def check_cells(rows: Sequence[Mapping[str, Any]], *, limit: int) -> None:
    """Refuse rows with a text that is longer than the settings allow.

    Raises:
        TooLarge: One is.
    """
    lengths = (
        len(value) for row in rows if isinstance(row, Mapping) for value in row.values() if isinstance(value, str)
    )
    check_size(CELL, given=max(lengths, default=0), limit=limit)


def check_explanations(model: espalier.Model, n_rows: int, *, explain: str, limit: int) -> None:
    """Refuse explanations of more nodes than the settings allow: all of an answer is in memory before it is sent.

    `full` looks at every node, or at every rule; a path has as many nodes as the tree has levels.

    Raises:
        TooLarge: There are more rows times nodes, or times levels.
    """
    is_list = isinstance(model.body, espalier.RuleList)
    if explain == "full":
        n_nodes = model.rules.n_rules + 1 if is_list else model.tree.n_nodes
        check_size("rows times nodes (explain: full)", given=n_rows * n_nodes, limit=limit)
    # Only a tree of so many nodes may have such paths: of others the depth is not computed.
    elif explain == "path" and not is_list and n_rows * model.tree.n_nodes > limit:
        check_size("rows times levels (explain: path)", given=n_rows * model.tree.depth, limit=limit)


def _predicted(
    resolved: ResolvedVersion, rows: Sequence[Mapping[str, Any]], options: PredictionOptions, *, max_steps: int
) -> Sequence[espalier.Prediction | espalier.Explanation | espalier.RowError]:
    model, missing = resolved.version.model, options.missing
    with _config_refused():
        if options.explain == "none":
            return espalier.predict_each(model, rows, missing=missing)
        return espalier.explain_each(model, rows, detail=options.explain, missing=missing, most_steps=max_steps)


def _answer(
    one: espalier.Prediction | espalier.Explanation | espalier.RowError,
    number: int,
    pointer: Pointer,
    faults: list[espalier.Fault],
) -> Answer:
    if not isinstance(one, espalier.RowError):
        return one.to_dict()
    found = [espalier.Fault(pointer(number, fault.path), fault.code, fault.message) for fault in one.faults]
    faults += found
    return _errors(found)


def _errors(faults: Sequence[espalier.Fault]) -> Answer:
    shown = faults[:MAX_FAULTS_A_ROW]
    return {"errors": [{"pointer": fault.path, "code": fault.code, "message": fault.message} for fault in shown]}


def _nodes(one: espalier.Prediction | espalier.Explanation | espalier.RowError) -> tuple[int, ...]:
    if isinstance(one, espalier.RowError):
        return ()
    return one.nodes if isinstance(one, espalier.Prediction) else one.prediction.nodes


@contextmanager
def _config_refused() -> Iterator[None]:
    try:
        yield
    except espalier.ConfigError as error:
        raise ValidationFailed(error.faults) from None
