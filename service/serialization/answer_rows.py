"""Answers to many rows as CSV, as lines of JSON, as the items of a JSON list, and as Parquet.

A row has what belongs to it alone (its number, its decision, the number of a regression) and an answer that it shares
with the other rows of its leaf. Shared answers are written once for each combination of answer and flags::

    17,0190…-…:17,              yes,0.93,0.84,47.0,5,,,if wind is weak then yes
    {"row":17,"decision_id":"0190…:17",   "label":"yes","distribution":{…},…}
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

import espalier
from service.serialization.table_records import TableRecord

PARQUET: Final = "application/vnd.apache.parquet"
RESULT_TYPES: Final[Mapping[str, str]] = {"ndjson": "application/x-ndjson", "csv": "text/csv", "parquet": PARQUET}
"""Content types by the names of the formats; the first is the default."""
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins with one of these is a formula to a spreadsheet."""
QUOTED: Final = frozenset(',"\n\r')


@dataclass(frozen=True, slots=True, eq=False)
class TableBatch:
    """Rows that were answered together.

    Attributes:
        first_row: The number of the first of them in the whole request.
        record_id: Their record in the decision log; empty where nothing is logged.
        rows: Inputs and answers.
    """

    first_row: int
    record_id: str
    rows: TableRecord


@dataclass(frozen=True, slots=True)
class _SharedAnswer:
    """An answer of one or more rows, with their flags."""

    document: Mapping[str, Any]
    rule: str | None
    missing: Sequence[str] = ()
    unseen: Sequence[str] = ()


class CsvLines:
    """CSV (RFC 4180) with a header line.

    Args:
        is_regression: Whether the answers are numbers.
        with_rule: Whether the sentence of each answer is written.
    """

    content_type = "text/csv; charset=utf-8"

    def __init__(self, *, is_regression: bool, with_rule: bool) -> None:
        self._with_rule = with_rule
        self._is_regression = is_regression
        own = ("value", "std") if is_regression else ("label", "probability", "confidence")
        rule = ("rule",) if with_rule else ()
        self._names = ("row", "decision_id", *own, "support", "leaf", "missing", "unseen", *rule, "error")

    def begin(self) -> bytes:
        """Return what precedes the first answer: the header line."""
        return _csv_line(self._names).encode()

    def table(self, batch: TableBatch) -> bytes:
        """Return the lines of a table record."""
        answers, places = _shared_answers(batch.rows)
        ends = [self._end(answer) for answer in answers]
        decision = f"{batch.record_id}:{{}}" if batch.record_id else ""
        rows = enumerate(places.tolist(), batch.first_row)
        if batch.rows.values is None:
            lines = [f"{row},{decision.format(row - batch.first_row)},{ends[place]}" for row, place in rows]
        else:
            values = _csv_numbers(batch.rows.values)
            lines = [
                f"{row},{decision.format(row - batch.first_row)},{value},{ends[place]}"
                for (row, place), value in zip(rows, values, strict=True)
            ]
        return "".join(lines).encode()

    def rows(self, first_row: int, answers: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the lines of rows that were answered one by one, each with its ``decision_id``."""
        return "".join(self._line(row, answer) for row, answer in enumerate(answers, first_row)).encode()

    def failure(self, row: int, problem: Mapping[str, Any]) -> bytes:
        """Return the last line: the row at which the stream ends, with the reason as its error."""
        blank = [""] * (len(self._names) - 2)
        return _csv_line([row, *blank, f"{problem['title']}: {problem['detail']}"]).encode()

    def _end(self, answer: _SharedAnswer) -> str:
        document = answer.document
        own = (
            [document["std"]] if self._is_regression else [document["label"], _share(document), document["confidence"]]
        )
        rule = [answer.rule] if self._with_rule else []
        flags = "; ".join(answer.missing), "; ".join(answer.unseen)
        return _csv_line([*own, document["support"], document["leaf"], *flags, *rule, ""])

    def _line(self, row: int, answer: Mapping[str, Any]) -> str:
        if "errors" in answer:
            error = "; ".join(f"{one['pointer']}: {one['message']}" for one in answer["errors"])
            return _csv_line([row, answer["decision_id"], *[""] * (len(self._names) - 3), error])
        cells = {
            **answer,
            "row": row,
            "probability": _share(answer),
            "missing": "; ".join(answer["flags"]["missing"]),
            "unseen": "; ".join(answer["flags"]["unseen"]),
            "error": "",
        }
        return _csv_line([cells[name] for name in self._names])


class JsonLines:
    """Lines of JSON, one object for each row.

    Args:
        with_rule: As in `CsvLines`.
    """

    content_type = "application/x-ndjson"

    def __init__(self, *, with_rule: bool) -> None:
        self._with_rule = with_rule

    def begin(self) -> bytes:
        """Return what precedes the first answer: nothing."""
        return b""

    def table(self, batch: TableBatch) -> bytes:
        """Return the lines of a table record."""
        rows = range(batch.first_row, batch.first_row + batch.rows.n_rows)
        items = _json_items(batch, with_rule=self._with_rule)
        return "".join(f'{{"row":{row},{item}\n' for row, item in zip(rows, items, strict=True)).encode()

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
    """Return the writer of CSV, or else of lines of JSON."""
    if content_type == RESULT_TYPES["csv"]:
        return CsvLines(is_regression=is_regression, with_rule=with_rule)
    return JsonLines(with_rule=with_rule)


def json_items(batch: TableBatch) -> bytes:
    """Return the answers as the items of a JSON list, with commas between them."""
    return ",".join(["{" + item for item in _json_items(batch, with_rule=False)]).encode()


def written(batches: Iterable[TableBatch], model: espalier.Model, *, form: str, with_rule: bool) -> Iterator[bytes]:
    """Write answers in one of the formats of `RESULT_TYPES`, with one batch in memory.

    Args:
        batches: The answers, in the order of their rows.
        model: The model that answered.
        form: The name of the format.
        with_rule: Whether the sentence of each answer is written.
    """
    if form == "parquet":
        yield from _parquet(batches, model, with_rule=with_rule)
        return
    lines = lines_of(RESULT_TYPES[form], is_regression=not model.schema.classes, with_rule=with_rule)
    yield lines.begin()
    for batch in batches:
        yield lines.table(batch)


def _shared_answers(rows: TableRecord) -> tuple[list[_SharedAnswer], npt.NDArray[np.int32]]:
    """Return the answers that differ in document or flags, and the place of each row's answer."""
    answers = [_SharedAnswer(each.document, each.rule, **each.document.get("flags", {})) for each in rows.answers]
    missing, unseen = rows.flags
    flagged = np.flatnonzero(missing.any(axis=0) | unseen.any(axis=0))
    if not len(flagged):
        return answers, rows.places
    names, places = np.array(rows.attributes, dtype=object), rows.places.copy()
    patterns = np.packbits(np.concatenate((missing[:, flagged], unseen[:, flagged])), axis=0).T
    known: dict[tuple[int, bytes], int] = {}
    for row, pattern in zip(flagged.tolist(), patterns, strict=True):
        answer = rows.answers[places[row]]
        if answer.has_flags:
            continue
        key = int(places[row]), pattern.tobytes()
        if key not in known:
            known[key] = len(answers)
            flags = names[missing[:, row]].tolist(), names[unseen[:, row]].tolist()
            answers.append(_SharedAnswer(answer.document, answer.rule, *flags))
        places[row] = known[key]
    return answers, places


def _json_items(batch: TableBatch, *, with_rule: bool) -> list[str]:
    """Return the members of each row's object, from the decision's id to the closing brace."""
    answers, places = _shared_answers(batch.rows)
    ends = [_json_end(answer, with_rule=with_rule) for answer in answers]
    named = f'"decision_id":"{batch.record_id}:%d",' if batch.record_id else '"decision_id":null,'
    begins = [named % row for row in range(batch.rows.n_rows)] if batch.record_id else [named] * batch.rows.n_rows
    if batch.rows.values is None:
        return [begin + ends[place] for begin, place in zip(begins, places.tolist(), strict=True)]
    values = orjson.dumps(batch.rows.values.tolist())[1:-1].decode().split(",")
    return [
        f'{begin}"value":{value},{ends[place]}'
        for begin, value, place in zip(begins, values, places.tolist(), strict=True)
    ]


def _json_end(answer: _SharedAnswer, *, with_rule: bool) -> str:
    document = {name: part for name, part in answer.document.items() if name not in ("value", "flags")}
    document["flags"] = {"missing": answer.missing, "unseen": answer.unseen}
    if with_rule:
        document["rule"] = answer.rule
    return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS).decode()[1:]


def _csv_line(cells: Sequence[Any]) -> str:
    return ",".join(map(_csv_cell, cells)) + "\n"


def _csv_cell(cell: Any) -> str:
    """Return the text of a cell; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return espalier.label_text(cell)
    text = f"'{cell}" if cell.startswith(FORMULA) else cell
    return '"' + text.replace('"', '""') + '"' if QUOTED.intersection(text) else text


def _csv_numbers(numbers: npt.NDArray[np.float64]) -> list[str]:
    import pyarrow  # noqa: PLC0415 - a process that writes no table does without it

    texts: list[str] = pyarrow.array(numbers).cast(pyarrow.string()).to_pylist()
    return texts


def _share(document: Mapping[str, Any]) -> float | None:
    """Return the share of the label that was answered; None for a number."""
    return document["distribution"][espalier.label_text(document["label"])] if "label" in document else None


def _parquet(batches: Iterable[TableBatch], model: espalier.Model, *, with_rule: bool) -> Iterator[bytes]:
    import pyarrow  # noqa: PLC0415 - as in `_csv_numbers`
    from pyarrow import parquet  # noqa: PLC0415 - as in `_csv_numbers`

    schema = _arrow_schema(model, with_rule=with_rule)
    sink = io.BytesIO()
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(pyarrow.table(_arrow_columns(batch, schema), schema=schema))
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


def _arrow_schema(model: espalier.Model, *, with_rule: bool) -> Any:
    import pyarrow  # noqa: PLC0415 - as in `_csv_numbers`

    number, names = pyarrow.float64(), pyarrow.list_(pyarrow.string())
    if model.schema.classes:
        own = [("label", _label_type(model)), ("probability", number), ("confidence", number)]
    else:
        own = [("value", number), ("std", number)]
    row = [("row", pyarrow.int64()), ("decision_id", pyarrow.string())]
    shared = [("support", number), ("leaf", pyarrow.int32()), ("missing", names), ("unseen", names)]
    return pyarrow.schema([*row, *own, *shared, *([("rule", pyarrow.string())] if with_rule else [])])


def _label_type(model: espalier.Model) -> Any:
    """Return the type of all classes if they have the same, else string."""
    import pyarrow  # noqa: PLC0415 - as in `_csv_numbers`

    types = {type(label) for label in model.schema.classes}
    by_type = {bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64()}
    return by_type.get(next(iter(types)), pyarrow.string()) if len(types) == 1 else pyarrow.string()


def _arrow_columns(batch: TableBatch, schema: Any) -> list[Any]:
    """Return the columns of a batch: each shared answer's cell is made once and taken by the rows."""
    import pyarrow  # noqa: PLC0415 - as in `_csv_numbers`

    answers, places = _shared_answers(batch.rows)
    taken = pyarrow.array(places)
    as_text = schema.names.count("label") and pyarrow.types.is_string(schema.field("label").type)
    cells: Mapping[str, Callable[[_SharedAnswer], Any]] = {
        "label": lambda each: espalier.label_text(each.document["label"]) if as_text else each.document["label"],
        "probability": lambda each: _share(each.document),
        "missing": lambda each: list(each.missing),
        "unseen": lambda each: list(each.unseen),
        "rule": lambda each: each.rule,
    }
    numbers = np.arange(batch.rows.n_rows)
    own = {
        "row": pyarrow.array(numbers + batch.first_row),
        "decision_id": pyarrow.array([f"{batch.record_id}:{number}" for number in numbers.tolist()]),
        "value": None if batch.rows.values is None else pyarrow.array(batch.rows.values),
    }
    columns = []
    for field in schema:
        if field.name in own:
            columns.append(own[field.name])
            continue
        cell = cells.get(field.name, lambda each, name=field.name: each.document[name])
        columns.append(pyarrow.array([cell(answer) for answer in answers], field.type).take(taken))
    return columns
