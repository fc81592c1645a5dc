"""Decisions on many rows as one Arrow IPC block: a column for each attribute, and what each row was answered.

::

    input.age      float64, NaN for missing
    input.wind     dictionary of labels (JSON), null for missing; the field's metadata names categories never seen
    input.secret   int8, of an erased attribute: KNOWN, MISSING or UNSEEN
    answer         dictionary of JSON texts [answer, nodes, rule]: one for each leaf, and one for each row that several
                   leaves answered together
    value          float64, of a regression

So a record contains all that was answered. The rows are divided into batches: to read one row, one batch is
decompressed.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

import espalier

Flags = npt.NDArray[np.bool_]
Cells = npt.NDArray[Any]

KNOWN, MISSING, UNSEEN = 0, 1, 2
MAX_RECORD_BYTES: Final = 16 * 2**20
MAX_LABEL_BYTES: Final = 4 * 2**20
BATCH_BYTES: Final = 2**20
CELL_BYTES: Final = 8
MODELS_CACHED: Final = 16
INPUT: Final = "input."


@dataclass(frozen=True, slots=True)
class AnsweredRow:
    """One decision of many.

    Attributes:
        input: The attributes as they were given; None where missing. Erased ones are left out.
        answer: The JSON form of the answer, without its path.
        nodes: Node ids, root first.
    """

    input: dict[str, Any]
    answer: dict[str, Any]
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that rows share.

    Attributes:
        document: Its JSON form. Without flags where a leaf answered the row alone: flags then belong to the row.
        nodes: Node ids, root first.
        rule: The sentence, if it is wanted.
    """

    document: dict[str, Any]
    nodes: tuple[int, ...]
    rule: str | None = None

    @property
    def has_flags(self) -> bool:
        """Whether several leaves gave the answer to one row together."""
        return "flags" in self.document


@dataclass(frozen=True, slots=True, eq=False)
class InputColumn:
    """The cells of one attribute.

    Attributes:
        name: The attribute.
        kind: None if the cells were erased.
        cells: float64 (rows) numbers; int32 (rows) places in `categories`, -1 for missing; int8 (rows) states of
            erased cells.
        categories: The labels that occur, of an attribute that has categories.
        unseen: Places of categories that the model has never seen.
    """

    name: str
    kind: espalier.FeatureKind | None
    cells: Cells
    categories: tuple[espalier.Label, ...] | None = None
    unseen: tuple[int, ...] = ()

    def flags(self) -> tuple[Flags, Flags]:
        """Return which cells are missing, and which are of a category that was never seen: bool (rows) both."""
        if self.kind is None:
            return self.cells == MISSING, self.cells == UNSEEN
        if self.categories is None:
            return np.isnan(self.cells), np.zeros(len(self.cells), np.bool_)
        return self.cells < 0, np.isin(self.cells, self.unseen)

    def erased(self) -> "InputColumn":
        """Return what is left after the cells are erased."""
        missing, unseen = self.flags()
        states = np.where(missing, MISSING, np.where(unseen, UNSEEN, KNOWN)).astype(np.int8)
        return InputColumn(self.name, None, states)


@dataclass(frozen=True, eq=False)
class TableRecord:
    """Decisions on many rows.

    Attributes:
        attributes: Names of the model's attributes; those without a column were not given.
        columns: The inputs.
        answers: The distinct answers.
        places: int32 (rows): the answer of each row.
        values: float64 (rows): what a regression answered; None for a classification.
    """

    attributes: tuple[str, ...]
    columns: tuple[InputColumn, ...]
    answers: tuple[Answer, ...]
    places: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64] | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.places)

    @property
    def is_regression(self) -> bool:
        """Whether the answers are numbers."""
        return self.values is not None

    @cached_property
    def leaves(self) -> npt.NDArray[np.int32]:
        """The leaf of each row, int32 (rows); of the heaviest path where several leaves answered."""
        return np.array([answer.document["leaf"] for answer in self.answers], np.int32)[self.places]

    def labels(self) -> npt.NDArray[np.object_]:
        """Return the label of each row as JSON text, object (rows); None for a regression."""
        documents = [answer.document for answer in self.answers]
        texts = [orjson.dumps(each["label"]).decode() if "label" in each else None for each in documents]
        return np.array(texts, dtype=object)[self.places]

    def label_counts(self) -> dict[str, int]:
        """Return how many rows were answered with each label, as text; all rows of a regression with ""."""
        if self.is_regression:
            return {"": self.n_rows}
        counts: Counter[str] = Counter()
        for answer, n_rows in zip(self.answers, np.bincount(self.places).tolist(), strict=False):
            if n_rows:
                label = answer.document["label"]
                counts[label if isinstance(label, str) else orjson.dumps(label).decode()] += n_rows
        return dict(counts)

    @cached_property
    def flags(self) -> tuple[Flags, Flags]:
        """Which values are missing, and which are of a category never seen: bool (attributes, rows) both."""
        shape = len(self.attributes), self.n_rows
        missing, unseen = np.ones(shape, np.bool_), np.zeros(shape, np.bool_)
        place_of = {name: place for place, name in enumerate(self.attributes)}
        for column in self.columns:
            missing[place_of[column.name]], unseen[place_of[column.name]] = column.flags()
        return missing, unseen

    def row(self, place: int) -> AnsweredRow:
        """Return one decision."""
        answer = self.answers[self.places[place]]
        document = answer.document
        if not answer.has_flags:
            names, (missing, unseen) = np.array(self.attributes, dtype=object), self.flags
            if self.values is not None:
                document = document | {"value": float(self.values[place])}
            flags = {"missing": names[missing[:, place]].tolist(), "unseen": names[unseen[:, place]].tolist()}
            document = document | {"flags": flags}
        return AnsweredRow(self._input(place), document, answer.nodes)

    def _input(self, place: int) -> dict[str, Any]:
        columns = [(column, column.kind) for column in self.columns if column.kind is not None]
        if not columns:
            return {}
        features = [espalier.Feature(each.name, kind, categories=each.categories or ()) for each, kind in columns]
        cells = tuple(column.cells[place : place + 1] for column, _ in columns)
        return espalier.Dataset(espalier.Schema(tuple(features)), cells).rows()[0]

    def without(self, names: Collection[str] | None = None) -> "TableRecord":
        """Return the record with the cells of some attributes erased; None: of all."""
        return replace(
            self,
            columns=tuple(
                column.erased() if names is None or column.name in names else column for column in self.columns
            ),
        )

    def to_bytes(self, *, with_rules: bool = False) -> bytes:
        """Return the record as `read_record` reads it.

        Args:
            with_rules: Whether the sentences of the answers are stored.
        """
        return _written(self, with_rules=with_rules)


def table_record(
    model: espalier.Model,
    dataset: espalier.Dataset,
    answers: espalier.TableAnswers,
    *,
    erased: Collection[str] = (),
    rules: bool = False,
) -> TableRecord:
    """Return the record of rows and their answers.

    Args:
        model: The model that answered, with its strategy for missing values.
        dataset: The rows; columns that are no attributes of the model are left out.
        answers: As `espalier.predict_table` returns them.
        erased: Attributes whose cells are not stored.
        rules: Whether answers have their sentences.
    """
    leaves, at = np.unique(answers.leaves, return_inverse=True)
    distinct = [_leaf_answer(model, leaf, with_rule=rules) for leaf in leaves.tolist()]
    places = at.astype(np.int32)
    for row, prediction in answers.several.items():
        places[row] = len(distinct)
        rule = espalier.rule_of(model, prediction) if rules else None
        distinct.append(Answer(prediction.to_dict(), prediction.nodes, rule))
    columns = tuple(_input_columns(model, dataset, answers, erased))
    names = tuple(feature.name for feature in model.schema.attributes)
    return TableRecord(names, columns, tuple(distinct), places, answers.numbers)


def record_rows(schema: espalier.Schema) -> int:
    """Return how many rows of a data set one record may hold: its size in bytes is bounded.

    The labels that occur are stored once. Where all labels together are large, each row counts with the longest.
    """
    lengths = [[len(str(label)) for label in feature.categories] for feature in schema.features]
    longest = sum(max(each, default=0) for each in lengths) if sum(map(sum, lengths)) > MAX_LABEL_BYTES else 0
    return max(1, MAX_RECORD_BYTES // (CELL_BYTES * (len(schema.features) + 1) + longest))


def read_record(content: bytes, *, start: int = 0, stop: int | None = None, inputs: bool = True) -> TableRecord:
    """Read the rows ``start:stop`` of a record; batches that hold none of them are not decompressed.

    Args:
        content: As `TableRecord.to_bytes` wrote it.
        start: The first row.
        stop: The row behind the last one; None: all.
        inputs: Whether the columns of the attributes are read.
    """
    import pyarrow  # noqa: PLC0415 - as in `_written`

    with pyarrow.ipc.open_file(content) as reader:
        schema = reader.schema
        n_batch, n_batches = int(schema.metadata[b"batch_rows"]), reader.num_record_batches
        attributes = tuple(orjson.loads(schema.metadata[b"attributes"]))
    named = [place for place, name in enumerate(schema.names) if inputs or not name.startswith(INPUT)]
    options = pyarrow.ipc.IpcReadOptions(included_fields=named)
    first = start // n_batch
    last = n_batches if stop is None else min(n_batches, -(-stop // n_batch))
    with pyarrow.ipc.open_file(content, options=options) as reader:
        table = pyarrow.Table.from_batches([reader.get_batch(number) for number in range(first, last)])
    table = table.slice(start - first * n_batch, None if stop is None else stop - start).combine_chunks()
    texts, places, _ = _dictionary(table.column("answer"))
    columns = tuple(_read_columns(table))
    values = table.column("value").to_numpy() if "value" in table.column_names else None
    return TableRecord(attributes, columns, tuple(map(_read_answer, texts)), places, values)


@lru_cache(maxsize=MODELS_CACHED)
def _answers_of(model: espalier.Model) -> dict[tuple[int, bool], Answer]:
    """Return the answers of a model's leaves that were worked out so far."""
    return {}


def _leaf_answer(model: espalier.Model, leaf: int, *, with_rule: bool) -> Answer:
    cached = _answers_of(model)
    answer = cached.get((leaf, with_rule))
    if answer is None:
        prediction = espalier.leaf_prediction(model, leaf)
        document = prediction.to_dict()
        del document["flags"]
        rule = espalier.rule_of(model, prediction) if with_rule else None
        answer = cached[leaf, with_rule] = Answer(document, prediction.nodes, rule)
    return answer


def _input_columns(
    model: espalier.Model, dataset: espalier.Dataset, answers: espalier.TableAnswers, erased: Collection[str]
) -> Iterator[InputColumn]:
    places = {feature.name: place for place, feature in enumerate(model.schema.attributes)}
    for feature, cells in zip(dataset.schema.features, dataset.columns, strict=True):
        if feature.name not in places:
            continue
        column = InputColumn(feature.name, feature.kind, np.asarray(cells))
        if feature.coded:
            unseen = answers.unseen[places[feature.name]]
            codes, at = _occurring(column.cells)
            strange = set(np.unique(column.cells[unseen]).tolist()) if unseen.any() else set()
            labels = tuple(feature.categories[code] for code in codes)
            marked = tuple(place for place, code in enumerate(codes) if code in strange)
            column = InputColumn(feature.name, feature.kind, at, labels, marked)
        yield column.erased() if feature.name in erased else column


def _written(record: TableRecord, *, with_rules: bool) -> bytes:
    import pyarrow  # noqa: PLC0415 - a process that answers only single rows does without it

    fields, arrays, n_bytes = [], [], 4
    for column in record.columns:
        cells, metadata = pyarrow.array(column.cells), {"kind": column.kind or ""}
        if column.categories is not None:
            cells = _encoded(column.cells, [orjson.dumps(label).decode() for label in column.categories])
            metadata["unseen"] = orjson.dumps(column.unseen).decode()
        fields.append(pyarrow.field(INPUT + column.name, cells.type, metadata=metadata))
        arrays.append(cells)
        n_bytes += column.cells.itemsize
    texts = [_answer_json(answer, with_rule=with_rules) for answer in record.answers]
    arrays.append(_encoded(record.places, texts))
    fields.append(pyarrow.field("answer", arrays[-1].type))
    if record.values is not None:
        arrays.append(pyarrow.array(record.values))
        fields.append(pyarrow.field("value", pyarrow.float64()))
    batch_rows = max(1, BATCH_BYTES // n_bytes)
    metadata = {"attributes": orjson.dumps(record.attributes).decode(), "batch_rows": str(batch_rows)}
    table = pyarrow.table(arrays, schema=pyarrow.schema(fields, metadata=metadata))
    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
    with pyarrow.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=batch_rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _encoded(places: npt.NDArray[np.int32], texts: Sequence[str]) -> Any:
    """Return a dictionary array; a place below 0 is null."""
    import pyarrow  # noqa: PLC0415 - as in `_written`

    indices = pyarrow.array(places, mask=places < 0)
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(texts, pyarrow.string()))


def _read_columns(table: Any) -> Iterator[InputColumn]:
    for field in table.schema:
        if not field.name.startswith(INPUT):
            continue
        name, kind, cells = field.name.removeprefix(INPUT), field.metadata[b"kind"].decode(), table.column(field.name)
        if b"unseen" in field.metadata:
            marked = set(orjson.loads(field.metadata[b"unseen"]))
            texts, places, used = _dictionary(cells)
            labels = tuple(map(orjson.loads, texts))
            unseen = tuple(place for place, code in enumerate(used) if code in marked)
            yield InputColumn(name, espalier.FeatureKind(kind), places, labels, unseen)
        else:
            yield InputColumn(name, espalier.FeatureKind(kind) if kind else None, cells.to_numpy())


def _dictionary(column: Any) -> tuple[list[str], npt.NDArray[np.int32], list[int]]:
    """Return the texts that occur, the place of each row's text, and the places of those texts in the dictionary."""
    import pyarrow  # noqa: PLC0415 - as in `_written`

    array = column.chunk(0)
    used, places = _occurring(array.indices.fill_null(-1).to_numpy())
    return array.dictionary.take(pyarrow.array(used, pyarrow.int32())).to_pylist(), places, used


def _occurring(codes: Cells) -> tuple[list[int], npt.NDArray[np.int32]]:
    """Return the codes that occur, ascending, and the place of each cell's code among them; -1 for missing."""
    distinct, places = np.unique(codes, return_inverse=True)
    n_missing = int(np.count_nonzero(distinct < 0))
    return distinct[n_missing:].tolist(), (places - n_missing).astype(np.int32)


def _answer_json(answer: Answer, *, with_rule: bool) -> str:
    parts = [answer.document, answer.nodes, answer.rule if with_rule else None]
    return orjson.dumps(parts, option=orjson.OPT_NON_STR_KEYS).decode()


def _read_answer(text: str) -> Answer:
    document, nodes, rule = orjson.loads(text)
    return Answer(document, tuple(nodes), rule)
