"""The result of a prediction job: its records in the decision log, part by part, in the form that was asked for."""

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import espalier
from service import decisions
from service.answer_lines import CsvLines, JsonLines, TableBatch
from service.database.engine import Sessions, reading
from service.errors import Conflict

__all__ = ["NONE_KEPT", "PARQUET", "RESULT_TYPES", "write_result"]

NONE_KEPT = "the decisions of this job are not kept from row {first_row} on: ask for another job"

PARQUET = "application/vnd.apache.parquet"
RESULT_TYPES: Mapping[str, str] = {
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "parquet": PARQUET,
}
"""Content types by the names of the forms; the first is given where none is asked for."""


def write_result(
    source: Sessions, job_id: str, *, model: espalier.Model, form: str, with_rule: bool, n_rows: int
) -> Iterator[bytes]:
    """Write what the rows of a data set were answered, in memory that does not grow with it.

    Args:
        source: Where the log is read, a transaction a part.
        job_id: The job.
        model: That answered.
        form: One of `RESULT_TYPES`.
        with_rule: Whether the sentence of each answer is written.
        n_rows: How many there should be.

    Raises:
        Conflict: Decisions of the job are not kept any more; before anything is given where it is the first ones.
    """
    parts = _parts(source, job_id, n_rows)
    return WRITERS[form](parts, model, with_rule=with_rule)


def _parts(source: Sessions, job_id: str, n_rows: int) -> Iterator[decisions.Part]:
    first_row = 0
    while first_row < n_rows:
        with reading(source) as session:
            part = decisions.next_part(session, job_id, first_row=first_row)
        if part is None:
            raise Conflict(NONE_KEPT.format(first_row=first_row))
        yield part
        first_row += part.rows.n_rows


def _csv(parts: Iterator[decisions.Part], model: espalier.Model, *, with_rule: bool) -> Iterator[bytes]:
    return _lines(parts, CsvLines(is_regression=not model.schema.classes, with_rule=with_rule))


def _ndjson(parts: Iterator[decisions.Part], model: espalier.Model, *, with_rule: bool) -> Iterator[bytes]:
    return _lines(parts, JsonLines(with_rule=with_rule))


def _lines(parts: Iterator[decisions.Part], lines: CsvLines | JsonLines) -> Iterator[bytes]:
    yield lines.begin()
    for part in parts:
        yield lines.table(TableBatch(part.first_row, part.record_id, part.rows))


def _parquet(parts: Iterator[decisions.Part], model: espalier.Model, *, with_rule: bool) -> Iterator[bytes]:
    import pyarrow  # noqa: PLC0415 - loaded by the first table
    from pyarrow import parquet  # noqa: PLC0415 - as above

    schema = _arrow_schema(model, with_rule=with_rule)
    sink = io.BytesIO()
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for part in parts:
            columns = _columns(part, model, with_rule=with_rule)
            writer.write_table(pyarrow.table(columns, schema=schema))
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


WRITERS: Mapping[str, Callable[..., Iterator[bytes]]] = {"ndjson": _ndjson, "csv": _csv, "parquet": _parquet}


def _arrow_schema(model: espalier.Model, *, with_rule: bool) -> Any:
    """Give the columns of the table; a label keeps its type where all classes have the same."""
    import pyarrow  # noqa: PLC0415 - as above

    shares = [("probability", pyarrow.float64()), ("confidence", pyarrow.float64())]
    answer = [("label", _label_type(model)), *shares] if model.schema.classes else [("value", pyarrow.float64())]
    names = pyarrow.list_(pyarrow.string())
    return pyarrow.schema(
        [
            ("row", pyarrow.int64()),
            ("decision_id", pyarrow.string()),
            *answer,
            *([] if model.schema.classes else [("std", pyarrow.float64())]),
            ("support", pyarrow.float64()),
            ("leaf", pyarrow.int32()),
            ("missing", names),
            ("unseen", names),
            *([("rule", pyarrow.string())] if with_rule else []),
        ]
    )


def _label_type(model: espalier.Model) -> Any:
    import pyarrow  # noqa: PLC0415 - as above

    types = {type(label) for label in model.schema.classes}
    by_type = {bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64()}
    return by_type.get(next(iter(types)), pyarrow.string()) if len(types) == 1 else pyarrow.string()


def _columns(part: decisions.Part, model: espalier.Model, *, with_rule: bool) -> dict[str, Any]:
    """Give the columns of a part: what a leaf says is put together once a leaf, and taken from there."""
    import pyarrow  # noqa: PLC0415 - as above

    rows = part.rows
    several = rows.several()
    leaves = rows.leaves()
    distinct, places = np.unique(leaves, return_inverse=True)
    alone = [leaf for leaf in distinct.tolist() if rows.has_leaf(leaf)]
    answers = [(rows.answer(leaf), rows.rule(leaf)) for leaf in alone] + list(several.values())
    at = {leaf: place for place, leaf in enumerate(alone)}
    places = np.array([at.get(leaf, 0) for leaf in distinct.tolist()])[places]
    places[list(several)] = len(alone) + np.arange(len(several))
    taken = pyarrow.array(places)

    def spread(cells: list[Any], kind: Any = None) -> Any:
        return pyarrow.array(cells, kind).take(taken)

    missing, unseen = rows.flags()
    names = rows.attributes()
    n_rows = rows.n_rows
    return {
        "row": pyarrow.array(np.arange(part.first_row, part.first_row + n_rows)),
        "decision_id": pyarrow.array([f"{part.record_id}:{place}" for place in range(n_rows)]),
        **_answer_columns(answers, model, spread),
        **({"value": pyarrow.array(rows.numbers())} if rows.is_regression else {}),
        "support": spread([answer["support"] for answer, _ in answers]),
        "leaf": pyarrow.array(leaves),
        "missing": _listed(missing, names),
        "unseen": _listed(unseen, names),
        **({"rule": spread([rule for _, rule in answers], pyarrow.string())} if with_rule else {}),
    }


def _answer_columns(
    answers: list[tuple[dict[str, Any], str | None]], model: espalier.Model, spread: Callable[..., Any]
) -> dict[str, Any]:
    if not model.schema.classes:
        return {"std": spread([answer["std"] for answer, _ in answers])}
    labels = [answer["label"] for answer, _ in answers]
    kind = _label_type(model)
    texts = [espalier.label_text(label) for label in labels]
    return {
        "label": spread(texts if str(kind) == "string" else labels, kind),
        "probability": spread([answer["distribution"][text] for (answer, _), text in zip(answers, texts, strict=True)]),
        "confidence": spread([answer["confidence"] for answer, _ in answers]),
    }


def _listed(flags: Any, names: list[str]) -> Any:
    """Give the names that are flagged in each row as an Arrow array of lists."""
    import pyarrow  # noqa: PLC0415 - as above

    at_row, place = np.nonzero(flags.T)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(at_row, minlength=flags.shape[1])))).astype(np.int32)
    values = pyarrow.array(names, pyarrow.string()).take(pyarrow.array(place))
    return pyarrow.ListArray.from_arrays(pyarrow.array(offsets), values)
