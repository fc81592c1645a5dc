"""Answer rows, or a table of rows, with a version; a durable log commits each decision before its answer is returned.

If a row cannot be read, all rows of the request (of a stream: of the batch) are refused, unless invalid rows are
skipped. The refused rows are logged: each invalid row with its faults, every other row as not answered.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import espalier
from service.errors import CELL, ValidationFailed, check_size, fault_members, translate_config_errors
from service.metrics import Metrics
from service.repositories import decisions
from service.repositories.decision_log import DecisionLog
from service.repositories.model_cache import LoadedVersion
from service.serialization.table_records import TableRecord, table_record
from service.settings import Settings
from service.usecases.version_resolver import ResolvedVersion

MAX_FAULTS_A_ROW: Final = 20  # in the answer and the log of an invalid row
NOT_ANSWERED: Final = espalier.Fault("", "not_answered", "the request was refused because of another row")
NO_JSON: Final = object()  # stands for the row of a line that is not JSON
OF_NO_JSON: Final = (espalier.Fault("", "not_json", "the line is not JSON in UTF-8"),)

Pointer = Callable[[int, str], str]
"""Maps the number of a row and a JSON pointer into the row to the JSON pointer into the request."""
Answer = dict[str, Any]
Result = espalier.Prediction | espalier.Explanation | espalier.RowError


@dataclass(frozen=True, slots=True)
class PredictionOptions:
    """How rows are answered."""

    explain: str = "path"  # none, path or full
    missing: str | None = None  # the strategy for missing values; None: that of the model
    skip: bool = False  # skip rows that cannot be read, instead of refusing the request
    subject: str | None = None  # the person or thing that the decisions are about


@dataclass(frozen=True, slots=True)
class Recorder:
    """Logs and counts the answers of a process; `begin` returns a copy for one request."""

    settings: Settings
    log: DecisionLog
    metrics: Metrics
    logging: str  # durable, best_effort or off
    key_id: str | None = None  # id of the caller's key; None: keys are off
    began: float = 0.0  # `time.perf_counter()` when the request arrived, or when the part of it began

    def begin(self, key_id: str | None) -> "Recorder":
        """Return a copy with this key for a request, or a part of a request, that begins now."""
        return replace(self, key_id=key_id, began=time.perf_counter())

    def waiting(self) -> "Recorder":
        """Return a recorder that waits for each commit if it logs at all, so that few records are in memory at once."""
        return replace(self, logging="durable") if self.logging == "best_effort" else self

    def record(self, version: LoadedVersion, record: dict[str, Any] | None, labels: Mapping[str, int]) -> None:
        """Log a record, if there is one, and count the answers by label."""
        is_counted = self.settings.metrics == "on"
        if record is not None:
            began = time.perf_counter()
            (self.log.append if self.logging == "durable" else self.log.submit)(record)
            if is_counted:
                self.metrics.commits.observe(time.perf_counter() - began)
                self.metrics.waiting.set(self.log.n_waiting)
        if is_counted:
            for label, n_rows in labels.items():
                self.metrics.predictions(version.model_name, version.number, label, n_rows)


def answer_rows(
    resolved: ResolvedVersion,
    rows: Sequence[Mapping[str, Any]],
    options: PredictionOptions,
    *,
    recorder: Recorder,
    pointer: Pointer,
) -> list[Answer]:
    """Answer rows one by one, and log them as one record.

    Returns the JSON form of each answer, with its ``decision_id`` (None without a log); a skipped row has ``errors``.

    Raises:
        RowError: A row cannot be read, and such rows are not skipped. `pointer` makes the paths of the faults.
        ValidationFailed: The strategy for missing values is not possible, or the subject is not legal.
        TooLarge: The rows exceed a limit of the settings.
        LimitExceeded, Unavailable: As for `DecisionLog.append`.
    """
    model, missing, settings = resolved.version.model, options.missing, recorder.settings
    limit = max_paths(model, settings)
    check_cells(rows, limit=settings.max_cell_chars)
    check_explanations(model, len(rows), explain=options.explain, settings=settings)
    faults: list[espalier.Fault] = []
    error: Exception | None = None
    try:
        results: Any
        with translate_config_errors():
            if options.explain == "none":
                results = espalier.predict_each(model, rows, missing=missing, most_paths=limit)
            else:
                results = espalier.explain_each(model, rows, detail=options.explain, missing=missing, most_steps=limit)
        answers = [_answer(result, rows, number, pointer, faults) for number, result in enumerate(results)]
        nodes = [() if isinstance(one, espalier.RowError) else getattr(one, "prediction", one).nodes for one in results]
    except ValidationFailed as refused:
        error, faults = refused, list(refused.faults)
        answers, nodes = [_errors(faults) for _ in rows], [()] * len(rows)
    if faults and error is None and not options.skip:
        error = espalier.RowError(faults)
        answers = [answer if "errors" in answer else _errors([NOT_ANSWERED]) for answer in answers]
        nodes = [()] * len(rows)
    record, ids = None, [None] * len(rows)  # type: tuple[dict[str, Any] | None, Sequence[str | None]]
    if recorder.logging != "off":
        record = decisions.row_record(
            _columns(resolved, options, key_id=recorder.key_id),
            attributes=resolved.version.attributes - resolved.settings.mask,
            inputs=rows,
            answers=answers,
            nodes=nodes,
            milliseconds=(time.perf_counter() - recorder.began) * 1000,
        )
        ids = decisions.decision_ids(record["id"], len(rows))
    recorder.record(resolved.version, record, Counter(map(decisions.label_of, answers)))
    if error is not None:
        raise error
    return [{"decision_id": decision_id, **answer} for decision_id, answer in zip(ids, answers, strict=True)]


def answer_table(
    resolved: ResolvedVersion,
    table: espalier.Dataset,
    options: PredictionOptions,
    *,
    recorder: Recorder,
    first_row: int = 0,
) -> TableRecord:
    """Answer the rows of a table without their paths, log them as one packed record, and wait for its commit.

    The answers have rules unless ``explain`` is none. `first_row` numbers the table's first row in the whole request.
    Raises `ValidationFailed` if the strategy for missing values is not possible or the subject is not legal, `TooLarge`
    if the rows have too many paths, and the errors of `DecisionLog.append`.
    """
    model = with_strategy(resolved.version.model, options.missing)
    answers = espalier.predict_table(model, table, most_paths=max_paths(model, recorder.settings))
    known, rules = resolved.version.leaf_answers, options.explain != "none"
    rows = table_record(model, table, answers, known=known, erased=resolved.settings.mask, rules=rules)
    record = None
    if recorder.logging != "off":
        same, content = _columns(resolved, options, key_id=recorder.key_id), rows.to_bytes()
        milliseconds = (time.perf_counter() - recorder.began) * 1000
        record = decisions.new_record(same, n_rows=rows.n_rows, milliseconds=milliseconds, packed=content)
    recorder.waiting().record(resolved.version, record, rows.label_counts())
    return replace(rows, record_id="" if record is None else record["id"], first_row=first_row)


def with_strategy(model: espalier.Model, missing: str | None) -> espalier.Model:
    """Return the model with this strategy for missing values; None means the strategy of the model."""
    with translate_config_errors():
        return espalier.with_missing_strategy(model, missing)


def _columns(resolved: ResolvedVersion, options: PredictionOptions, *, key_id: str | None) -> decisions.Columns:
    version, settings = resolved.version, resolved.settings
    return {
        "version_id": version.id,
        "document_sha256": version.document_sha256,
        "missing": options.missing or version.model.config.missing,
        "alias": resolved.alias,
        "subject": options.subject,
        "key_id": key_id,
        "masked": settings.masked(version.attributes),
        "operating_point": settings.operating_point,
    }


def check_cells(rows: Sequence[Mapping[str, Any]], *, limit: int) -> None:
    """Raise `TooLarge` if a text in the rows has more than `limit` characters."""
    lengths = (len(cell) for row in rows if isinstance(row, Mapping) for cell in row.values() if isinstance(cell, str))
    check_size(CELL, given=max(lengths, default=0), limit=limit)


def max_paths(model: espalier.Model, settings: Settings) -> int:
    """Return the limit on levels, steps and paths: lower from ten classes on, since each of them has all classes."""
    return max(1, settings.max_full_nodes // (1 + len(model.schema.classes) // 10))


def check_explanations(model: espalier.Model, n_rows: int, *, explain: str, settings: Settings) -> None:
    """Raise `TooLarge` if the explanations of a request may exceed a limit; all of them are in memory at once.

    A full explanation counts as all nodes of a tree, or as all rules of a rule list and its default rule. A path in a
    tree counts as the depth of the tree; paths in a rule list have no limit.
    """
    is_list, limit = isinstance(model.body, espalier.RuleList), max_paths(model, settings)
    if explain == "full":
        n_nodes = model.rules.n_rules + 1 if is_list else model.tree.n_nodes
        check_size("rows times nodes (explain: full)", given=n_rows * n_nodes, limit=settings.max_full_nodes)
    # The depth takes time to compute. It is less than the number of nodes, so most requests do not need it.
    elif explain == "path" and not is_list and n_rows * model.tree.n_nodes > limit:
        check_size("rows times levels (explain: path)", given=n_rows * model.tree.depth, limit=limit)


def _answer(result: Result, rows: Sequence[Any], number: int, pointer: Pointer, faults: list[espalier.Fault]) -> Answer:
    if not isinstance(result, espalier.RowError):
        return result.to_dict()
    found = OF_NO_JSON if rows[number] is NO_JSON else result.faults
    of_row = [espalier.Fault(pointer(number, fault.path), fault.code, fault.message) for fault in found]
    faults += of_row
    return _errors(of_row)


def _errors(faults: Sequence[espalier.Fault]) -> Answer:
    n_hidden = len(faults) - MAX_FAULTS_A_ROW
    more = [espalier.Fault("", "more_errors", f"and {n_hidden} more")] if n_hidden > 0 else []
    return {"errors": fault_members([*faults[:MAX_FAULTS_A_ROW], *more])}
