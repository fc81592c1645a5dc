"""Answers to many rows as CSV, as lines of JSON, as the items of a JSON list, and as Parquet.

A row has its own values (its number, its decision id, the value of a regression) and an answer. Rows that reach only
one leaf share its answer. Each combination of answer and flags is encoded once; Arrow appends it to each row::

    17,0190…-…:17,              yes,0.93,0.84,47.0,5,,,if wind is weak then yes,
    {"row":17,"decision_id":"0190…:17",   "label":"yes","distribution":{…},…}
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import orjson

import espalier
from service.serialization import load_pyarrow
from service.serialization.media_types import CSV, NDJSON, RESULTS
from service.serialization.table_records import TableRecord

ROW_COLUMNS: Final = ("row", "decision_id", "value")
"""Columns whose cells belong to one row. The cells of all other columns are shared by rows with the same answer."""
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes a cell with such a beginning for a formula
QUOTED: Final = frozenset(',"\n\r')


class CsvLines:
    """CSV with a header line, quoted as in RFC 4180; each line ends in LF alone."""

    content_type = f"{CSV}; charset=utf-8"

    def __init__(self, *, is_regression: bool, with_rule: bool) -> None:
        self._names = (*_column_names(is_regression=is_regression, with_rule=with_rule), "error")
        self.head = _csv_line(self._names).encode()

    def table(self, batch: TableRecord) -> bytes:
        """Return the lines of a table record."""
        answers, places = batch.distinct_answers()
        shared = [name for name in self._names if name not in ROW_COLUMNS]
        ends = [_csv_line([_cell(answer, name) for name in shared]) for answer in answers]
        values = () if batch.values is None else (_texts(batch.values), ",")
        lines = _joined(_texts(_row_numbers(batch)), ",", _decision_ids(batch), ",", *values, _texts(ends).take(places))
        return _bytes(lines)

    def rows(self, first_row: int, answers: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the lines of rows that were answered one by one, each with its ``decision_id``."""
        lines = []
        for row, answer in enumerate(answers, first_row):
            if "errors" in answer:
                error = "; ".join(f"{one['pointer']}: {one['message']}" for one in answer["errors"])
                lines.append(self._error_line(row, answer["decision_id"], error))
            else:
                lines.append(_csv_line(_cell({"row": row, **answer}, name) for name in self._names))
        return "".join(lines).encode()

    def failure(self, row: int, problem: Mapping[str, Any]) -> bytes:
        """Return the last line: the row at which the stream ends, with the reason as its error."""
        return self._error_line(row, None, f"{problem['title']}: {problem['detail']}").encode()

    def _error_line(self, row: int, decision_id: str | None, error: str) -> str:
        return _csv_line([row, decision_id, *[None] * (len(self._names) - 3), error])


class JsonLines:
    """Lines of JSON, one object for each row."""

    content_type = NDJSON
    head = b""

    def __init__(self, *, with_rule: bool) -> None:
        self._with_rule = with_rule

    def table(self, batch: TableRecord) -> bytes:
        """Return the lines of a table record."""
        return _json_objects(batch, '{"row":', _texts(_row_numbers(batch)), ",", end="\n", with_rule=self._with_rule)

    def rows(self, first_row: int, answers: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the lines of rows that were answered one by one, each with its ``decision_id``."""
        option = orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
        return b"".join(
            orjson.dumps({"row": row, **answer}, option=option) for row, answer in enumerate(answers, first_row)
        )

    def failure(self, row: int, problem: Mapping[str, Any]) -> bytes:
        """Return the last line: the row at which the stream ends, and the problem."""
        return orjson.dumps({"row": row, "problem": problem}, option=orjson.OPT_APPEND_NEWLINE)


AnswerLines = CsvLines | JsonLines


def lines_of(content_type: str, *, is_regression: bool, with_rule: bool) -> AnswerLines:
    """Return the encoder of CSV or, for any other type, of lines of JSON."""
    if content_type == CSV:
        return CsvLines(is_regression=is_regression, with_rule=with_rule)
    return JsonLines(with_rule=with_rule)


def json_items(batch: TableRecord) -> bytes:
    """Return the answers as the items of a JSON list, with commas between them."""
    return _json_objects(batch, "{", end=",", with_rule=False)[:-1]


def encode_result(
    batches: Iterable[TableRecord], model: espalier.Model, *, form: str, with_rule: bool
) -> Iterator[bytes]:
    """Encode answers in one of the formats of `RESULTS`, with only one batch in memory."""
    if form == "parquet":
        yield from _parquet(batches, model, with_rule=with_rule)
        return
    lines = lines_of(RESULTS[form], is_regression=not model.schema.classes, with_rule=with_rule)
    yield lines.head
    for batch in batches:
        yield lines.table(batch)


def _column_names(*, is_regression: bool, with_rule: bool) -> tuple[str, ...]:
    answer = ("value", "std") if is_regression else ("label", "probability", "confidence")
    rule = ("rule",) if with_rule else ()
    return ("row", "decision_id", *answer, "support", "leaf", "missing", "unseen", *rule)


def _cell(answer: Mapping[str, Any], name: str) -> Any:
    """Return the cell of an answer in a column; ``probability`` is the probability of the answer's label."""
    if name == "probability":
        return answer["distribution"][espalier.label_text(answer["label"])]
    return answer["flags"][name] if name in ("missing", "unseen") else answer.get(name)


def _csv_line(cells: Iterable[Any]) -> str:
    return ",".join(map(_csv_cell, cells)) + "\n"


def _csv_cell(cell: Any) -> str:
    """Return the text of a cell; an apostrophe is put before a text that a spreadsheet would take for a formula."""
    if cell is None:
        return ""
    text = "; ".join(cell) if isinstance(cell, list) else espalier.label_text(cell)
    if isinstance(cell, str | list) and text.startswith(FORMULA):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if QUOTED.intersection(text) else text


def _json_objects(batch: TableRecord, *begin: Any, end: str, with_rule: bool) -> bytes:
    """Return the JSON objects of the rows: each begins with `begin` and the decision id, and is followed by `end`."""
    answers, places = batch.distinct_answers()
    if not with_rule:
        for answer in answers:
            del answer["rule"]
    shared = [orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS)[1:].decode() + end for answer in answers]
    decision_id = ('"', _decision_ids(batch), '"') if batch.record_id else ("null",)
    value: tuple[Any, ...] = ()
    if batch.values is not None:
        value = '"value":', _texts(orjson.dumps(batch.values.tolist())[1:-1].decode().split(",")), ","
    return _bytes(_joined(*begin, '"decision_id":', *decision_id, ",", *value, _texts(shared).take(places)))


def _parquet(batches: Iterable[TableRecord], model: espalier.Model, *, with_rule: bool) -> Iterator[bytes]:
    from pyarrow import parquet  # noqa: PLC0415 - as `load_pyarrow` says

    schema = _arrow_schema(model, with_rule=with_rule)
    sink = io.BytesIO()
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(_arrow_table(batch, schema))
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


def _arrow_schema(model: espalier.Model, *, with_rule: bool) -> Any:
    """Return the types of the columns. A label has the type of the classes if all have the same type, else text."""
    pyarrow = load_pyarrow()
    number, text, names = pyarrow.float64(), pyarrow.string(), pyarrow.list_(pyarrow.string())
    class_types = {type(label) for label in model.schema.classes}
    label_types = {bool: pyarrow.bool_(), int: pyarrow.int64(), float: number}
    label = label_types.get(class_types.pop(), text) if len(class_types) == 1 else text
    types = {"row": pyarrow.int64(), "decision_id": text, "label": label, "rule": text, "leaf": pyarrow.int32()}
    types |= {"missing": names, "unseen": names}
    columns = _column_names(is_regression=not model.schema.classes, with_rule=with_rule)
    return pyarrow.schema([(name, types.get(name, number)) for name in columns])


def _arrow_table(batch: TableRecord, schema: Any) -> Any:
    pyarrow = load_pyarrow()
    answers, places = batch.distinct_answers()
    columns = {"row": _row_numbers(batch), "decision_id": _decision_ids(batch), "value": batch.values}
    for field in schema:
        if field.name not in ROW_COLUMNS:
            cells = [_cell(answer, field.name) for answer in answers]
            if field.name == "label" and field.type == pyarrow.string():
                cells = list(map(espalier.label_text, cells))
            columns[field.name] = pyarrow.array(cells, field.type).take(places)
    return pyarrow.table({name: columns[name] for name in schema.names}).cast(schema)


def _row_numbers(batch: TableRecord) -> Any:
    return np.arange(batch.first_row, batch.first_row + batch.n_rows)


def _decision_ids(batch: TableRecord) -> Any:
    """Return the decision id of each row as Arrow texts; "" if nothing is logged."""
    return batch.record_id and _joined(batch.record_id, ":", _texts(np.arange(batch.n_rows)))


def _texts(cells: Any) -> Any:
    """Return numbers or texts as Arrow texts of type large_string, since the texts of a batch may exceed 2 GiB."""
    pyarrow = load_pyarrow()
    return pyarrow.array(cells).cast(pyarrow.large_string())


def _joined(*parts: Any) -> Any:
    """Return the text of each row; a part is an array of Arrow texts, or a text that all rows have."""
    pyarrow = load_pyarrow()
    texts = [pyarrow.scalar(part, pyarrow.large_string()) if isinstance(part, str) else part for part in (*parts, "")]
    return pyarrow.compute.binary_join_element_wise(*texts)


def _bytes(texts: Any) -> bytes:
    pyarrow = load_pyarrow()
    whole = pyarrow.LargeListArray.from_arrays([0, len(texts)], texts)
    content: bytes = pyarrow.compute.binary_join(whole, pyarrow.scalar("", texts.type))[0].as_buffer().to_pybytes()
    return content
