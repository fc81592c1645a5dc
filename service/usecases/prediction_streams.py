"""Predictions on rows that come as a stream, CSV or lines of JSON: answered batch by batch, in memory that stays flat.

    bytes ──> a batch ──> answers ──> committed to the log ──> bytes

What is given back was logged before. An error in the middle is raised where it happens: what came before it stands.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson

import espalier
from service.database.engine import Sessions, transaction
from service.repositories import decisions
from service.repositories.models import LoadedVersion
from service.serialization.answer_rows import AnswerLines, TableBatch
from service.serialization.table_records import TableRecord, table_record
from service.settings import Settings
from service.usecases import limits, predictions, refusals
from service.usecases.version_resolver import ModelSettings

ROWS_AT_ONCE = 1_000  # lines of JSON that are answered together
BLOCK = 65_536
LONGEST_LINE = 4 * 2**20  # bytes of a line of JSON


class ByteStream(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Give at most `size` bytes, and none only at the end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of every row of a stream.

    Attributes:
        version: That answers.
        model: The same, as it takes missing values.
        alias: That led to the version.
        model_settings: Of the model: which inputs are not kept.
        explain: ``none``, ``path`` or ``full``.
        missing: The strategy that was asked for; None: the model's own.
        skip: Whether rows that cannot be read are passed over.
        subject: Whom the decisions are about.
        key_id: The key that asks.
        settings: Limits.
        count: Is told of answers that were logged: the label, as `decisions.label_of` gives it, and of how many rows.
        look: Gives the policy anew before each batch is answered; raises where that is not to be any more. None: nobody
            looks, since there is one batch.
    """

    version: LoadedVersion
    model: espalier.Model
    alias: str | None
    model_settings: ModelSettings
    explain: str
    missing: str | None
    skip: bool
    subject: str | None
    key_id: str | None
    settings: Settings
    count: Callable[[str, int], None] = lambda _label, _n_rows: None
    look: Callable[[], ModelSettings] | None = None

    @property
    def origin(self) -> decisions.RecordContext:
        """What the log is told of every table."""
        return decisions.RecordContext(
            version_id=self.version.id,
            document_sha256=self.version.document_sha256,
            missing=self.missing or self.version.model.config.missing,
            alias=self.alias,
            subject=self.subject,
            key_id=self.key_id,
            masked=self.model_settings.masked(self.version.attributes),
            operating_point=self.model_settings.operating_point,
        )

    def now(self) -> "Asked":
        """Give what is asked of the next batch: what was said of the model meanwhile holds for open streams, too."""
        return self if self.look is None else replace(self, model_settings=self.look())

    @property
    def logged(self) -> dict[str, Any]:
        """What the log is told of rows that are answered one by one."""
        return {
            "version": self.version,
            "missing": self.missing,
            "subject": self.subject,
            "alias": self.alias,
            "key_id": self.key_id,
            "mask": self.model_settings.mask,
            "operating_point": self.model_settings.operating_point,
        }


@dataclass(slots=True)
class Progress:
    """How far a stream has come: so many rows were answered."""

    n_rows: int = 0


def answer_csv(
    source: Sessions, asked: Asked, stream: ByteStream, lines: AnswerLines, progress: Progress
) -> Iterator[bytes]:
    """Answer CSV.

    Raises:
        espalier.DataError: It is no CSV, or a line of another length.
        espalier.RowError: A column that is no attribute; a row that cannot be read, where those are not passed over.
        espalier.TooLarge: More rows, or a longer text in a cell, than the settings allow.
        Unavailable: The log cannot be written.
        Conflict: The version was archived meanwhile.
        NotFound: It was deleted meanwhile.
        Unauthenticated: The key of who asks was revoked, or has expired.
    """
    yield lines.begin()
    for batch in espalier.batches_from_csv(asked.model.schema, stream):
        began = time.perf_counter()
        limit = asked.settings.max_rows
        limits.check_size("rows", given=batch.first_row + batch.n_rows, limit=limit)
        if batch.dataset is None:
            yield from _rows_answered(source, asked, batch.rows, lines, batch.first_row)
        else:
            asked = asked.now()
            _check_labels(asked, batch.dataset)
            yield lines.table(answer_table(source, asked, batch.first_row, batch.dataset, began=began))
        progress.n_rows = batch.first_row + batch.n_rows


def answer_json_lines(
    source: Sessions, asked: Asked, stream: ByteStream, lines: AnswerLines, progress: Progress
) -> Iterator[bytes]:
    """Answer lines of JSON, an object of attribute names and values each; errors as in `answer_csv`."""
    yield lines.begin()
    first_row = 0
    for texts in _together(_texts(stream)):
        limits.check_size("rows", given=first_row + len(texts), limit=asked.settings.max_rows)
        rows = [_row(text) for text in texts]
        yield from _rows_answered(source, asked, rows, lines, first_row)
        first_row += len(rows)
        progress.n_rows = first_row
    if not first_row:
        raise espalier.DataError([espalier.Fault("", "empty", "there are no lines: each must be an object")])


READERS: Mapping[str, Callable[[Sessions, Asked, ByteStream, AnswerLines, Progress], Iterator[bytes]]] = {
    "text/csv": answer_csv,
    "application/x-ndjson": answer_json_lines,
}


def answer_table(
    source: Sessions, asked: Asked, first_row: int, dataset: espalier.Dataset, *, began: float
) -> TableBatch:
    """Answer the rows of a table, log them and count the answers.

    Args:
        source: Where to log.
        asked: What is asked of every row.
        first_row: The place of the first of them in all that was asked.
        dataset: The rows.
        began: `time.perf_counter()` when they arrived.

    Raises:
        Conflict: The version was deleted meanwhile.
        Unavailable: The log cannot be written.
    """
    rows = packed_answers(asked, dataset)
    record_id = ""
    if asked.settings.decisions != "off":
        content = rows.to_bytes()
        with transaction(source) as session:
            milliseconds = (time.perf_counter() - began) * 1000
            record_id = decisions.record_packed(
                session, asked.origin, n_rows=dataset.n_rows, content=content, milliseconds=milliseconds
            )
    count_answers(asked, rows)
    return TableBatch(first_row, record_id, rows)


def packed_answers(asked: Asked, dataset: espalier.Dataset) -> TableRecord:
    """Answer the rows of a table; nothing is logged."""
    answers = espalier.predict_table(asked.model, dataset)
    return table_record(asked.model, dataset, answers, erased=asked.model_settings.mask, rules=asked.explain != "none")


def count_answers(asked: Asked, rows: TableRecord) -> None:
    """Count answers by their labels."""
    for label, n_rows in rows.label_counts().items():
        asked.count(label, n_rows)


def _rows_answered(
    source: Sessions, asked: Asked, rows: Sequence[Mapping[str, Any]], lines: AnswerLines, first_row: int
) -> Iterator[bytes]:
    limit = asked.settings.max_full_nodes
    predictions.check_explaining(asked.model, first_row + len(rows), explain=asked.explain, limit=limit)
    at_once = predictions.rows_at_once(asked.model, ROWS_AT_ONCE, explain=asked.explain, limit=limit)
    for start in range(0, len(rows), at_once):
        began = time.perf_counter()
        asked = asked.now()
        some = rows[start : start + at_once]
        predictions.check_cells(some, limit=asked.settings.max_cell_chars)
        answered = _answered(asked, some, first_row + start)
        faults = [] if asked.skip else [fault for answer in answered.answers for fault in answer.get("errors", ())]
        if faults:
            answered = refusals.failed_with(answered.answers)
        ids = [""] * len(some)
        if asked.settings.decisions != "off":
            with transaction(source) as session:
                ids = decisions.record(
                    session,
                    inputs=some,
                    answers=answered.answers,
                    nodes=answered.nodes,
                    milliseconds=(time.perf_counter() - began) * 1000,
                    **asked.logged,
                )
        for answer in answered.answers:
            asked.count(decisions.label_of(answer), 1)
        if faults:
            raise espalier.RowError([espalier.Fault(one["pointer"], one["code"], one["message"]) for one in faults])
        yield lines.rows(first_row + start, ids, answered.answers)


def _answered(asked: Asked, rows: Sequence[Mapping[str, Any]], first_row: int) -> predictions.PredictionResults:
    def place(row: int, path: str) -> str:
        return f"/rows/{first_row + row}{path}"

    return predictions.predict_each(
        asked.version,
        rows,
        explain=asked.explain,
        missing=asked.missing,
        place=place,
        limit=asked.settings.max_full_nodes,
    )


def _check_labels(asked: Asked, dataset: espalier.Dataset) -> None:
    """Refuse texts that are too long, as for any other cell; the model's own categories are as they are."""
    known = {feature.name: len(feature.categories) for feature in asked.model.schema.attributes}
    new = (label for feature in dataset.schema.features for label in feature.categories[known[feature.name] :])
    longest = max((len(label) for label in new if isinstance(label, str)), default=0)
    limits.check_size(limits.CELL, given=longest, limit=asked.settings.max_cell_chars)


def _texts(stream: ByteStream) -> Iterator[bytes]:
    """Give the lines that are not empty, without their ends."""
    waiting = b""
    n_lines = 0
    while block := stream.read(BLOCK):
        *lines, waiting = (waiting + block).split(b"\n")
        n_lines += len(lines)
        yield from (line for line in lines if line.strip())
        if len(waiting) > LONGEST_LINE:
            message = f"line {n_lines + 1} is longer than {LONGEST_LINE} bytes"
            raise espalier.DataError([espalier.Fault("", "too_long", message)])
    if waiting.strip():
        yield waiting


def _together(texts: Iterator[bytes]) -> Iterator[list[bytes]]:
    some: list[bytes] = []
    size = 0
    for text in texts:
        some.append(text)
        size += len(text)
        if len(some) >= ROWS_AT_ONCE or size >= LONGEST_LINE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _row(text: bytes) -> Any:
    """Read a line; what is no JSON is no row, either, and is refused as one."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return NO_JSON


NO_JSON = object()
