"""Answer the rows of a CSV or NDJSON file batch by batch, in memory that does not grow with the file.

    file ──> batch ──> answers ──> committed to the log ──> bytes

An error is raised only after the answers to all earlier batches have been returned and, if the log is on, logged.
"""

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, Final

import orjson

import espalier
from service.errors import CELL, check_size
from service.serialization.answer_formats import AnswerLines
from service.serialization.media_types import CSV, NDJSON
from service.usecases import predictions
from service.usecases.predictions import NO_JSON, PredictionOptions, Recorder
from service.usecases.version_resolver import ResolvedVersion

ROWS_AT_ONCE: Final = 1_000  # maximum number of rows that are answered one by one, and then logged together
MAX_TABLE_ROWS: Final = 65_536  # of a table that is answered at once: short lines make many rows of few bytes
MAX_LINE_BYTES: Final = 4 * 2**20  # of a line of JSON; a batch of lines ends at this size, too


@dataclass(slots=True, kw_only=True)
class PredictionStream:
    """The state of the predictions for one file of rows; `current` raises if key or version may no longer be used."""

    current: Callable[[], ResolvedVersion]  # returns the version with its present settings
    options: PredictionOptions
    recorder: Recorder
    lines: AnswerLines
    n_rows: int = field(default=0, init=False)  # number of rows answered so far
    max_part: int = field(default=MAX_TABLE_ROWS, init=False)  # rows to answer together: half as many after a refusal

    def pointer(self, row: int, path: str) -> str:
        """Return a JSON pointer into the whole stream; `path` is a pointer into row `row` of the current batch."""
        return f"/rows/{self.n_rows + row}{path}"


def answer_csv(stream: PredictionStream, schema: espalier.Schema, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the header line of the output (empty for NDJSON), then the encoded answers to the rows of a CSV file."""
    settings = stream.recorder.settings
    yield stream.lines.head
    for batch in espalier.batches_from_csv(schema, file):
        check_size("rows", given=stream.n_rows + batch.n_rows, limit=settings.max_rows)
        if batch.dataset is not None:
            known = {feature.name: len(feature.categories) for feature in schema.attributes}
            columns = (feature.categories[known[feature.name] :] for feature in batch.dataset.schema.features)
            longest = max((len(label) for new in columns for label in new if isinstance(label, str)), default=0)
            check_size(CELL, given=longest, limit=settings.max_cell_chars)
        yield from _answers(stream, batch.rows if batch.dataset is None else batch.dataset, batch.n_rows)


def answer_json_lines(stream: PredictionStream, schema: espalier.Schema, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the header line of the output as `answer_csv` does, then the encoded answers to the rows of NDJSON."""
    yield stream.lines.head
    for texts in _batches(_lines(file)):
        check_size("rows", given=stream.n_rows + len(texts), limit=stream.recorder.settings.max_rows)
        if stream.options.explain == "full":
            model, settings = stream.current().version.model, stream.recorder.settings
            predictions.check_explanations(model, stream.n_rows + len(texts), explain="full", settings=settings)
        yield from _answers(stream, [_row(text) for text in texts], len(texts))
    if not stream.n_rows:
        raise espalier.DataError([espalier.Fault("", "empty", "there are no lines: each must be an object")])


READERS: Final[Mapping[str, Callable[[PredictionStream, espalier.Schema, IO[bytes]], Iterator[bytes]]]] = {
    CSV: answer_csv,
    NDJSON: answer_json_lines,
}


def _answers(stream: PredictionStream, batch: Sequence[Any] | espalier.Dataset, n_rows: int) -> Iterator[bytes]:
    """Yield the encoded answers to a batch. If many rows take several branches, fewer rows are answered together."""
    start, options = 0, stream.options
    while start < n_rows:
        resolved, recorder = stream.current(), stream.recorder.begin(stream.recorder.key_id)
        stop = min(start + stream.max_part, n_rows)
        try:
            if isinstance(batch, espalier.Dataset):
                part = batch.take(range(start, stop)) if stop - start < n_rows else batch
                table = predictions.answer_table(resolved, part, options, recorder=recorder, first_row=stream.n_rows)
                content = stream.lines.table(table)
            else:
                stop, pointer = min(stop, start + ROWS_AT_ONCE), stream.pointer
                rows = predictions.answer_rows(resolved, batch[start:stop], options, recorder=recorder, pointer=pointer)
                content = stream.lines.rows(stream.n_rows, rows)
        except espalier.TooLarge as error:
            if stop - start == 1 or error.what == CELL:
                raise
            stream.max_part = (stop - start) // 2
            continue
        yield content
        stream.n_rows += stop - start
        start, stream.max_part = stop, min(2 * stream.max_part, MAX_TABLE_ROWS)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), start=1):
        if len(line) > MAX_LINE_BYTES:
            message = f"line {number} is longer than {MAX_LINE_BYTES} bytes"
            raise espalier.DataError([espalier.Fault("", "too_long", message)])
        text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if text.strip():
            yield text


def _batches(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    n_bytes = 0
    for line in lines:
        batch.append(line)
        n_bytes += len(line)
        if len(batch) >= ROWS_AT_ONCE or n_bytes >= MAX_LINE_BYTES:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch


def _row(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return NO_JSON
