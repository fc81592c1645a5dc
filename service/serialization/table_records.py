"""Decisions on many rows as one Arrow IPC block::

    input.age      float64, NaN for missing
    input.wind     dictionary of labels (JSON), null for missing
    answer         dictionary of JSON texts [answer, nodes, rule]: one per leaf, and one per row with several leaves
    flags          bytes: a bit per attribute, set if its value is missing; then a bit per attribute, set if its
                   category is unseen
    value          float64, only for a regression

An attribute that was not given, is masked or is erased has no column. Reading a row decompresses the batch of the row.
"""

import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

import espalier
from service.serialization import load_pyarrow

Codes = npt.NDArray[np.int32]

MAX_RECORD_BYTES: Final = 16 * 2**20  # before compression, estimated
MAX_LABEL_BYTES: Final = 4 * 2**20  # see `record_rows`
BATCH_BYTES: Final = 2**20  # of the rows that are compressed together, before compression
CELL_BYTES: Final = 8
PLACE_BYTES: Final = 4
MAX_LEAF_ANSWERS: Final = 100_000  # that are kept for further records of a model
INPUT: Final = "input."


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one or more rows, without the flags of missing and unseen values, which may differ by row."""

    document: dict[str, Any]
    nodes: tuple[int, ...]  # root first
    rule: str | None = None


@dataclass(frozen=True, eq=False)
class TableRecord:
    """Decisions on many rows."""

    attributes: tuple[str, ...]  # names of the model's attributes
    inputs: espalier.Dataset  # columns that were given and are stored, with the categories that occur
    answers: tuple[Answer, ...]  # distinct answers
    places: Codes  # int32 (rows): index of each row's answer in `answers`
    flags: npt.NDArray[np.uint8]  # (rows, bytes): the bits of missing and unseen values
    values: npt.NDArray[np.float64] | None  # (rows): the numbers that a regression answered; None for a classification
    record_id: str = ""  # in the decision log; empty if nothing is logged
    first_row: int = 0  # number of the first row in the whole request

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.places)

    @cached_property
    def leaves(self) -> Codes:
        """The leaf of each row, int32 (rows); if the row reached several leaves, the one with the most weight."""
        return np.array([answer.document["leaf"] for answer in self.answers], np.int32)[self.places]

    def labels(self) -> npt.NDArray[np.object_]:
        """Return the label of each row as JSON text, object (rows); for a regression, all are None."""
        documents = [answer.document for answer in self.answers]
        texts = [label_json(each["label"]) if "label" in each else None for each in documents]
        return np.array(texts, dtype=object)[self.places]

    def label_counts(self) -> dict[str, int]:
        """Return a dict from the text of each label to its number of rows; for a regression, the only key is ""."""
        counts: Counter[str] = Counter()
        for answer, n_rows in zip(self.answers, np.bincount(self.places).tolist(), strict=False):
            counts[espalier.label_text(answer.document.get("label", ""))] += n_rows
        return {label: n_rows for label, n_rows in counts.items() if n_rows}

    def row(self, place: int) -> dict[str, Any]:
        """Return one decision: ``input`` with the stored attributes, ``answer`` without the path, and ``nodes``."""
        answer = self.answers[self.places[place]]
        value = {} if self.values is None else {"value": float(self.values[place])}
        document = {**answer.document, **value, "flags": self._flag_names(self.flags[place].tobytes())}
        inputs = self.inputs.rows(place, place + 1)
        return {"input": inputs[0] if inputs else {}, "answer": document, "nodes": answer.nodes}

    def distinct_answers(self) -> tuple[list[dict[str, Any]], Any]:
        """Return the distinct answers in JSON form, with ``flags`` and ``rule``, and each row's index (Arrow, int32).

        The answers lack ``value``, which is in `values`. Do not change ``flags``: answers may share this object.
        """
        pyarrow = load_pyarrow()
        keys = np.column_stack((self.places.view(np.uint8).reshape(-1, PLACE_BYTES), self.flags))
        layout = pyarrow.binary(keys.shape[1]), self.n_rows, [None, pyarrow.py_buffer(keys)]
        distinct = pyarrow.FixedSizeBinaryArray.from_buffers(*layout).dictionary_encode()
        flag_names = cache(self._flag_names)  # few distinct flags: most rows have none set
        documents = []
        for key in distinct.dictionary.to_pylist():
            answer = self.answers[int.from_bytes(key[:PLACE_BYTES], sys.byteorder)]
            shared = {name: part for name, part in answer.document.items() if name != "value"}
            documents.append({**shared, "flags": flag_names(key[PLACE_BYTES:]), "rule": answer.rule})
        return documents, distinct.indices

    def to_bytes(self, *, with_rules: bool = False) -> bytes:
        """Encode the record for `read_record`, optionally with the rules of the answers."""
        pyarrow = load_pyarrow()
        arrays, kinds = {}, {}
        for feature, cells in zip(self.inputs.schema.features, self.inputs.columns, strict=True):
            labels = [label_json(label) for label in feature.categories]
            arrays[INPUT + feature.name] = _encoded(cells, labels) if feature.coded else pyarrow.array(cells)
            kinds[feature.name] = feature.kind
        parts = ([each.document, each.nodes, each.rule if with_rules else None] for each in self.answers)
        texts = [orjson.dumps(part, option=orjson.OPT_NON_STR_KEYS).decode() for part in parts]
        arrays["answer"] = _encoded(self.places, texts)
        arrays["flags"] = pyarrow.FixedSizeListArray.from_arrays(self.flags.ravel(), self.flags.shape[1])
        if self.values is not None:
            arrays["value"] = pyarrow.array(self.values)
        batch_rows = max(1, BATCH_BYTES // (CELL_BYTES * len(arrays)))
        metadata = {"attributes": self.attributes, "kinds": kinds, "batch_rows": batch_rows}
        table = pyarrow.table(arrays, metadata={name: orjson.dumps(part) for name, part in metadata.items()})
        sink = pyarrow.BufferOutputStream()
        # Waiting for Arrow's threads, which other requests use too, would take longer than the compression.
        options = pyarrow.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
        with pyarrow.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=batch_rows)
        content: bytes = sink.getvalue().to_pybytes()
        return content

    def _flag_names(self, flags: bytes) -> dict[str, list[str]]:
        n_attributes = len(self.attributes)
        flagged = np.flatnonzero(np.unpackbits(np.frombuffer(flags, np.uint8))).tolist()
        return {
            "missing": [self.attributes[place] for place in flagged if place < n_attributes],
            "unseen": [self.attributes[place - n_attributes] for place in flagged if place >= n_attributes],
        }


LeafAnswers = dict[tuple[int, bool], Answer]
"""The answers of leaves by number, with their rule or without. The strategy for missing values makes no difference."""
NO_INPUTS: Final = espalier.Dataset(espalier.Schema(()), ())


def table_record(
    model: espalier.Model,
    dataset: espalier.Dataset,
    answers: espalier.TableAnswers,
    *,
    known: LeafAnswers | None = None,
    erased: Collection[str] = (),
    rules: bool = False,
) -> TableRecord:
    """Return the record of the rows of `dataset`; `answers` is what `espalier.predict_table` has returned for them.

    The cells of the attributes in `erased` are left out; with `rules`, each answer has the text of its rule. Answers in
    `known`, of earlier records with the model, are not made again; new ones are added to it.
    """
    leaves, at = np.unique(answers.leaves, return_inverse=True)
    known = {} if known is None else known
    distinct = [_leaf_answer(model, leaf, known, with_rule=rules) for leaf in leaves.tolist()]
    places = at.astype(np.int32)
    for row, prediction in answers.several.items():
        places[row] = len(distinct)
        distinct.append(_answer(model, prediction, with_rule=rules))
    attributes = tuple(feature.name for feature in model.schema.attributes)
    features, columns = [], []
    for feature, cells in zip(dataset.schema.features, dataset.columns, strict=True):
        if feature.name in attributes and feature.name not in erased:
            occurring, codes = _occurring(np.asarray(cells)) if feature.coded else ((), cells)
            categories = tuple(feature.categories[code] for code in occurring)
            features.append(espalier.Feature(feature.name, feature.kind, categories=categories))
            columns.append(codes)
    inputs = espalier.Dataset(espalier.Schema(tuple(features)), tuple(columns))
    flags = np.packbits(np.concatenate((answers.missing, answers.unseen)), axis=0).T
    return TableRecord(attributes, inputs, tuple(distinct), places, flags, answers.numbers)


def record_rows(schema: espalier.Schema, *, n_classes: int) -> int:
    """Return how many rows of a data set one record may hold, so that its size is bounded.

    The answer of each row may have all classes, but a label is stored once. If the labels exceed `MAX_LABEL_BYTES` in
    total, a few rows may have most of them. In this case, each row also counts with the longest label of each column.
    """
    lengths = [[len(str(label).encode()) for label in feature.categories] for feature in schema.features]
    longest = sum(max(each, default=0) for each in lengths) if sum(map(sum, lengths)) > MAX_LABEL_BYTES else 0
    return max(1, MAX_RECORD_BYTES // (CELL_BYTES * (len(schema.features) + 1 + n_classes) + longest))


def read_record(content: bytes, *, start: int = 0, stop: int | None = None, inputs: bool = True) -> TableRecord:
    """Read the rows ``start:stop`` of a record; batches that hold none of these rows are not decompressed.

    Without `inputs`, the columns of the attributes are not read.
    """
    pyarrow = load_pyarrow()
    with pyarrow.ipc.open_file(content) as reader:
        names, n_batches = reader.schema.names, reader.num_record_batches
        metadata = {name.decode(): orjson.loads(text) for name, text in reader.schema.metadata.items()}
    included = [place for place, name in enumerate(names) if inputs or not name.startswith(INPUT)]
    n_batch = metadata["batch_rows"]
    first = start // n_batch
    last = n_batches if stop is None else min(n_batches, -(-stop // n_batch))
    with pyarrow.ipc.open_file(content, options=pyarrow.ipc.IpcReadOptions(included_fields=included)) as reader:
        table = pyarrow.Table.from_batches([reader.get_batch(number) for number in range(first, last)])
    table = table.slice(start - first * n_batch, None if stop is None else stop - start).combine_chunks()
    arrays = {name: table.column(name).chunk(0) for name in table.column_names}
    features, columns = [], []
    for name, kind in metadata["kinds"].items() if inputs else ():
        cells = arrays[INPUT + name]
        is_coded = pyarrow.types.is_dictionary(cells.type)
        texts, column = _decoded(cells) if is_coded else ([], cells.to_numpy())
        features.append(espalier.Feature(name, espalier.FeatureKind(kind), categories=tuple(map(orjson.loads, texts))))
        columns.append(column)
    texts, places = _decoded(arrays["answer"])
    return TableRecord(
        attributes=tuple(metadata["attributes"]),
        inputs=espalier.Dataset(espalier.Schema(tuple(features)), tuple(columns)),
        answers=tuple(Answer(document, tuple(nodes), rule) for document, nodes, rule in map(orjson.loads, texts)),
        places=places,
        flags=arrays["flags"].flatten().to_numpy().reshape(len(places), -1),
        values=arrays["value"].to_numpy() if "value" in arrays else None,
    )


def label_json(label: object) -> str:
    """Return a label as JSON text, so that labels that differ only in type have different texts."""
    return orjson.dumps(label).decode()


def _leaf_answer(model: espalier.Model, leaf: int, known: LeafAnswers, *, with_rule: bool) -> Answer:
    answer = known.get((leaf, with_rule))
    if answer is None:
        answer = _answer(model, espalier.leaf_prediction(model, leaf), with_rule=with_rule)
        if len(known) >= MAX_LEAF_ANSWERS:
            known.clear()
        known[leaf, with_rule] = answer
    return answer


def _answer(model: espalier.Model, prediction: espalier.Prediction, *, with_rule: bool) -> Answer:
    document = prediction.to_dict()
    del document["flags"]
    return Answer(document, prediction.nodes, espalier.rule_of(model, prediction) if with_rule else None)


def _encoded(places: npt.NDArray[Any], texts: Sequence[str]) -> Any:
    pyarrow = load_pyarrow()
    indices = pyarrow.array(places, mask=places < 0)
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(texts, pyarrow.string()))


def _decoded(array: Any) -> tuple[list[str], Codes]:
    """Return the occurring texts of a dictionary array, and the index of each row's text among them (-1 for null)."""
    used, places = _occurring(array.indices.fill_null(-1).to_numpy())
    return array.dictionary.take(load_pyarrow().array(used, "int32")).to_pylist(), places


def _occurring(codes: Codes) -> tuple[list[int], Codes]:
    """Return the occurring codes, ascending, and the index of each cell's code among them (-1 for a missing cell)."""
    distinct, places = np.unique(codes, return_inverse=True)
    n_missing = int(np.count_nonzero(distinct < 0))
    return distinct[n_missing:].tolist(), (places - n_missing).astype(np.int32)
