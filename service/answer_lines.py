"""Answers to many rows as lines of text: CSV for tables and spreadsheets, JSON for programs.

A line begins with what is the row's own (its place, its decision, the number of a regression) and ends with what its
leaf says, which is written once a leaf and taken from there; whole columns are put together by pyarrow::

    17,0190…-…:17,      |  yes,0.93,0.84,47.0,5,,,if wind is weak then yes
    {"row":17,"decision_id":"0190…:17"  |  ,"label":"yes","distribution":{…},…}
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import orjson

import espalier
from service.packed import PackedRows

__all__ = ["MOST_KEPT", "AnswerLines", "CsvLines", "JsonLines", "TableBatch", "json_items", "lines_of"]

MOST_TAILS = 20_000  # that are kept: one may be thousands of signs long
MOST_KEPT = 10_000  # numbers of decisions that are kept as they are written
Kept = dict[tuple[int, bytes], str]
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which a cell begins that a spreadsheet takes for a program
QUOTED = frozenset(',"\n\r')


@dataclass(frozen=True, slots=True, eq=False)
class TableBatch:
    """Rows that were answered as a table and logged.

    Attributes:
        first_row: The place of the first of them in all that was asked.
        record_id: Of their record in the log; empty where nothing is logged.
        rows: What they were asked and answered.
    """

    first_row: int
    record_id: str
    rows: PackedRows


class AnswerLines(Protocol):
    """A way to write answers."""

    content_type: str

    def begin(self) -> bytes:
        """Give what stands before the first answer."""
        ...

    def table(self, batch: TableBatch) -> bytes:
        """Give the lines of rows that came as a table."""
        ...

    def rows(self, first_row: int, ids: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> bytes:
        """Give the lines of rows that were answered one by one."""
        ...

    def failure(self, row: int, problem: Mapping[str, Any]) -> bytes:
        """Give the line that says why there are no more, and at which row."""
        ...


WriteTail = Callable[[Mapping[str, Any], str | None, Sequence[str], Sequence[str]], str]
"""Writes the end of a line from an answer, its sentence, the names of what is missing, and of what was never seen."""


class _Tails:
    """The ends of lines, each written once for a leaf and what was missing or unseen.

    Args:
        kept: Where they are kept: a dictionary of the version and the form, or a new one.
        write: Writes one.
    """

    def __init__(self, kept: dict[tuple[int, bytes], str], write: WriteTail) -> None:
        self._kept = kept
        self._write = write

    def of(self, rows: PackedRows) -> Any:
        """Give the end of each row's line, an Arrow array of texts."""
        import pyarrow  # noqa: PLC0415 - loaded by the first table

        tails, places = self.distinct(rows)
        return pyarrow.array(tails, pyarrow.large_string()).take(pyarrow.array(places))

    def distinct(self, rows: PackedRows) -> tuple[list[str], npt.NDArray[np.signedinteger[Any]]]:
        """Give the ends that lines have, and which of them each row's has."""
        names = np.array(rows.attributes(), dtype=object)
        missing, unseen = rows.flags()
        several = rows.several()
        leaves = rows.leaves()
        odd = np.array(missing.any(axis=0) | unseen.any(axis=0))
        odd[list(several)] = True
        distinct, places = np.unique(np.where(odd, -1, leaves), return_inverse=True)
        places = places.astype(np.int32)
        tails = [self._tail(rows, leaf, b"", ((), ())) if leaf >= 0 else "" for leaf in distinct.tolist()]
        strange = np.flatnonzero(odd).tolist()
        patterns = np.packbits(np.concatenate((missing[:, strange], unseen[:, strange])), axis=0).T
        for row, pattern in zip(strange, patterns, strict=True):
            places[row] = len(tails)
            if row in several:
                flags = several[row][0]["flags"]
                tails.append(self._write(*several[row], flags["missing"], flags["unseen"]))
            else:
                named = names[missing[:, row]].tolist(), names[unseen[:, row]].tolist()
                tails.append(self._tail(rows, int(leaves[row]), pattern.tobytes(), named))
        return tails, places

    def _tail(self, rows: PackedRows, leaf: int, pattern: bytes, named: tuple[Sequence[str], Sequence[str]]) -> str:
        found = self._kept.get((leaf, pattern))
        if found is None:
            if len(self._kept) >= MOST_TAILS:
                self._kept.clear()
            found = self._kept[leaf, pattern] = self._write(rows.answer(leaf), rows.rule(leaf), *named)
        return found


class CsvLines:
    """Lines of CSV (RFC 4180), the first one the names.

    Args:
        is_regression: Whether the answers are numbers.
        with_rule: Whether the sentence of each answer is written.
        kept: Where ends of lines of this version, this form and these arguments are kept; None: nowhere.
    """

    content_type = "text/csv; charset=utf-8"

    def __init__(self, *, is_regression: bool, with_rule: bool, kept: Kept | None = None) -> None:
        self._with_rule = with_rule
        self._is_regression = is_regression
        own = ("value", "std") if is_regression else ("label", "probability", "confidence")
        rule = ("rule",) if with_rule else ()
        self._names = ("row", "decision_id", *own, "support", "leaf", "missing", "unseen", *rule, "error")
        self._tails = _Tails({} if kept is None else kept, self._tail)

    def begin(self) -> bytes:
        """Give the names."""
        return _csv_line(self._names)

    def table(self, batch: TableBatch) -> bytes:
        """Give the lines of a table."""
        from pyarrow import compute  # noqa: PLC0415 - as above

        parts = [*_row_and_decision(batch)]
        if self._is_regression:
            parts.append(_texts(batch.rows.numbers()))
        parts.append(self._tails.of(batch.rows))
        return _joined(compute.binary_join_element_wise(*parts, _large(",")))

    def rows(self, first_row: int, ids: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> bytes:
        """Give the lines of rows answered one by one."""
        return b"".join(
            self._line(first_row + place, key, answer)
            for place, (key, answer) in enumerate(zip(ids, answers, strict=True))
        )

    def failure(self, row: int, problem: Mapping[str, Any]) -> bytes:
        """Give the last line: of the row at which the stream ends, with the reason for an error."""
        return _csv_line([row, *[""] * (len(self._names) - 2), f"{problem['title']}: {problem['detail']}"])

    def _tail(self, answer: Mapping[str, Any], rule: str | None, missing: Sequence[str], unseen: Sequence[str]) -> str:
        own = [answer["std"]] if self._is_regression else [answer["label"], _share(answer), answer["confidence"]]
        sentence = [rule] if self._with_rule else []
        cells = [*own, answer["support"], answer["leaf"], "; ".join(missing), "; ".join(unseen), *sentence, ""]
        return _csv_line(cells).decode()

    def _line(self, row: int, decision_id: str, answer: Mapping[str, Any]) -> bytes:
        if "errors" in answer:
            error = "; ".join(f"{one['pointer']}: {one['message']}" for one in answer["errors"])
            return _csv_line([row, decision_id, *[""] * (len(self._names) - 3), error])
        cells = {
            **answer,
            "row": row,
            "decision_id": decision_id,
            "probability": _share(answer),
            "missing": "; ".join(answer["flags"]["missing"]),
            "unseen": "; ".join(answer["flags"]["unseen"]),
            "error": "",
        }
        return _csv_line([cells[name] for name in self._names])


class JsonLines:
    """Lines of JSON, an object each. Rows that come one by one bring what was asked for.

    Args:
        with_rule: As of `CsvLines`.
        kept: As of `CsvLines`.
    """

    content_type = "application/x-ndjson"

    def __init__(self, *, with_rule: bool, kept: Kept | None = None) -> None:
        self._with_rule = with_rule
        self._tails = _Tails({} if kept is None else kept, self._tail)

    def begin(self) -> bytes:
        """Give nothing."""
        return b""

    def table(self, batch: TableBatch) -> bytes:
        """Give the lines of a table."""
        row, decision = _row_and_decision(batch)
        return _json_lines(batch, [_large('{"row":'), row, _large(",")], decision, self._tails)

    def rows(self, first_row: int, ids: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> bytes:
        """Give the lines of rows answered one by one."""
        option = orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
        return b"".join(
            orjson.dumps({"row": first_row + place, "decision_id": key or None, **answer}, option=option)
            for place, (key, answer) in enumerate(zip(ids, answers, strict=True))
        )

    def failure(self, row: int, problem: Mapping[str, Any]) -> bytes:
        """Give the last line: the row at which the stream ends, and the problem."""
        return orjson.dumps({"row": row, "problem": problem}, option=orjson.OPT_APPEND_NEWLINE)

    def _tail(self, answer: Mapping[str, Any], rule: str | None, missing: Sequence[str], unseen: Sequence[str]) -> str:
        more = {"rule": rule} if self._with_rule else {}
        return _json_tail(answer, missing, unseen, **more) + "\n"


def json_items(batch: TableBatch, *, kept: Kept) -> bytes:
    """Give the answers to a table as the items of a JSON list, with a comma between them; `kept` as of `CsvLines`."""

    def tail(answer: Mapping[str, Any], _: str | None, missing: Sequence[str], unseen: Sequence[str]) -> str:
        return _json_tail(answer, missing, unseen) + ","

    tails, places = _Tails(kept, tail).distinct(batch.rows)
    ends = list(map([tail.encode() for tail in tails].__getitem__, places.tolist()))
    begin = b'{"decision_id":null,'
    parts: list[Iterable[bytes]] = [repeat(begin, len(ends)), ends]
    if batch.record_id:
        begin = f'{{"decision_id":"{batch.record_id}:'.encode()
        parts = [repeat(begin, len(ends)), _numbered(len(ends)), ends]
    if batch.rows.is_regression:
        numbers = orjson.dumps(batch.rows.numbers().tolist())[1:-1].split(b",")
        parts[-1:] = [repeat(b'"value":'), numbers, repeat(b","), ends]
    return b"".join(chain.from_iterable(zip(*parts, strict=False)))[:-1]


def _numbered(n_rows: int) -> Iterable[bytes]:
    """Give how the decisions of a record go on behind its id, up to the next member."""
    return _kept_numbers()[:n_rows] if n_rows <= MOST_KEPT else (b'%d",' % place for place in range(n_rows))


@cache
def _kept_numbers() -> tuple[bytes, ...]:
    return tuple(b'%d",' % place for place in range(MOST_KEPT))


def lines_of(
    content_type: str, *, is_regression: bool, with_rule: bool, kept: Kept | None = None
) -> CsvLines | JsonLines:
    """Give what writes lines of CSV, or else of JSON; arguments as of `CsvLines`."""
    if content_type == "text/csv":
        return CsvLines(is_regression=is_regression, with_rule=with_rule, kept=kept)
    return JsonLines(with_rule=with_rule, kept=kept)


def _json_lines(batch: TableBatch, begin: Sequence[Any], decision: Any, tails: _Tails) -> bytes:
    """Write an object a row: what it begins with, its decision, the number of a regression, the end of its line."""
    from pyarrow import compute  # noqa: PLC0415 - as above

    named = [_large('"'), decision, _large('"')] if batch.record_id else [_large("null")]
    parts = [*begin, _large('"decision_id":'), *named]
    if batch.rows.is_regression:
        parts += [_large(',"value":'), _json_numbers(batch.rows.numbers())]
    parts += [_large(","), tails.of(batch.rows)]
    return _joined(compute.binary_join_element_wise(*parts, _large("")))


def _json_tail(answer: Mapping[str, Any], missing: Sequence[str], unseen: Sequence[str], **more: Any) -> str:
    """Write what an object says behind the decision and the number."""
    document = {name: part for name, part in answer.items() if name not in ("value", "flags")}
    return orjson.dumps({**document, "flags": {"missing": missing, "unseen": unseen}, **more}).decode()[1:]


def _row_and_decision(batch: TableBatch) -> tuple[Any, Any]:
    """Give each row's place in all, and the id of its decision."""
    from pyarrow import compute  # noqa: PLC0415 - as above

    places = np.arange(batch.rows.n_rows)
    if not batch.record_id:
        return _texts(places + batch.first_row), _large("")
    decisions = compute.binary_join_element_wise(_large(batch.record_id), _texts(places), _large(":"))
    return _texts(places + batch.first_row), decisions


def _texts(numbers: npt.NDArray[Any]) -> Any:
    import pyarrow  # noqa: PLC0415 - as above

    return pyarrow.array(numbers).cast(pyarrow.large_string())


def _json_numbers(numbers: npt.NDArray[np.float64]) -> Any:
    """Give numbers as a JSON document has them elsewhere: 5.0 for 5."""
    import pyarrow  # noqa: PLC0415 - as above

    return pyarrow.array(orjson.dumps(numbers.tolist())[1:-1].decode().split(","), pyarrow.large_string())


def _large(text: str) -> Any:
    import pyarrow  # noqa: PLC0415 - as above

    return pyarrow.scalar(text, pyarrow.large_string())


def _joined(lines: Any) -> bytes:
    """Give the texts of an array one after the other: they stand so in its memory."""
    _, offsets, texts = lines.buffers()
    bounds = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    content: bytes = texts[int(bounds[0]) : int(bounds[-1])].to_pybytes()
    return content


def _csv_line(cells: Sequence[Any]) -> bytes:
    return (",".join(map(_csv_cell, cells)) + "\n").encode()


def _csv_cell(cell: Any) -> str:
    """Write a cell; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return espalier.label_text(cell)
    text = f"'{cell}" if cell.startswith(FORMULA) else cell
    return '"' + text.replace('"', '""') + '"' if QUOTED.intersection(text) else text


def _share(answer: Mapping[str, Any]) -> float | None:
    """Give the share of the label that was answered; None for a number."""
    return answer["distribution"][espalier.label_text(answer["label"])] if "label" in answer else None
