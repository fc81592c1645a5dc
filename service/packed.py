"""Decisions on many rows as one block of bytes: the cells in columns, what a leaf answers once, not once a row.

::

    head      JSON, compressed     the attributes; what each leaf answered and the nodes on the way to it; the whole
                                   answer of each row that several leaves answered together
    table     Arrow, compressed    c0, c1, …: the columns that were given, float64 or places in a list of labels in the
                                   head, null where missing; leaf; number, of a regression

So a record says by itself what was answered. Of an erased column only KNOWN, MISSING or UNSEEN is left of each cell.
The first four bytes are the length of the head. pyarrow is loaded by the first call that needs it: a process that
answers single rows never does.
"""

import io
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
import numpy.typing as npt
import orjson

import espalier

__all__ = ["LeafBook", "PackedRow", "PackedRows", "book_of", "pack", "unpack"]

Flags = npt.NDArray[np.bool_]

LENGTH_BYTES = 4
MOST_LEAVES = 100_000  # whose answers a book keeps
MOST_TAILS = 20_000  # of one form that it keeps: one may be thousands of signs long
KNOWN, MISSING, UNSEEN = 0, 1, 2
BY_LEAF = ("leaves", "several", "rules")  # parts of the head whose keys are numbers


class LeafBook:
    """What the leaves of a model answer, each worked out when it is first asked for."""

    def __init__(self, model: espalier.Model) -> None:
        self._model = ref(model)  # not the model itself, which would then live as long as what is kept for it
        self._answers: dict[int, tuple[dict[str, Any], tuple[int, ...]]] = {}
        self._rules: dict[int, str] = {}
        self._tails: dict[str, dict[tuple[int, bytes], str]] = {}

    def answer(self, leaf: int) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Give what a leaf answers a row that it answers alone, without flags, and the nodes on the way to it."""
        found = self._answers.get(leaf)
        if found is None:
            if len(self._answers) >= MOST_LEAVES:
                self._answers.clear()
            prediction = espalier.leaf_prediction(self._held(), leaf)
            document = prediction.to_dict()
            del document["flags"]
            found = self._answers[leaf] = document, prediction.nodes
        return found

    def rule(self, leaf: int) -> str:
        """Give the sentence of a leaf."""
        found = self._rules.get(leaf)
        if found is None:
            if len(self._rules) >= MOST_TAILS:
                self._rules.clear()
            model = self._held()
            found = self._rules[leaf] = espalier.rule_of(model, espalier.leaf_prediction(model, leaf))
        return found

    def tails(self, form: str) -> dict[tuple[int, bytes], str]:
        """Give what was written of leaves in one form; empty at first, and again when it has grown too large."""
        found = self._tails.setdefault(form, {})
        if len(found) >= MOST_TAILS:
            found.clear()
        return found

    def _held(self) -> espalier.Model:
        model = self._model()
        assert model is not None  # noqa: S101 - whoever asks the book holds the model
        return model


_BOOKS: WeakKeyDictionary[espalier.Model, LeafBook] = WeakKeyDictionary()


def book_of(model: espalier.Model) -> LeafBook:
    """Give the book of a model, begun on first use and kept as long as the model."""
    found = _BOOKS.get(model)
    if found is None:
        found = _BOOKS[model] = LeafBook(model)
    return found


@dataclass(frozen=True, slots=True)
class PackedRow:
    """One decision of many.

    Attributes:
        input: The attributes as they were given; None where missing. Those that were erased are not there.
        answer: The JSON form of the answer, without its path.
        nodes: Node ids, root first.
    """

    input: dict[str, Any]
    answer: dict[str, Any]
    nodes: tuple[int, ...]


def pack(
    model: espalier.Model,
    dataset: espalier.Dataset,
    answers: espalier.TableAnswers,
    *,
    erased: Collection[str] = (),
    rules: bool = False,
) -> "PackedRows":
    """Put together what rows were asked and answered.

    Args:
        model: That answered, as it takes missing values.
        dataset: The rows; what is no attribute of the model is not kept.
        answers: As `espalier.predict_table` gave them.
        erased: Attributes whose cells are not kept.
        rules: Whether the sentences of the leaves are put in, too.
    """
    import pyarrow  # noqa: PLC0415 - see the top of this module

    book = book_of(model)
    columns, arrays = _columns(model, dataset, answers, erased)
    arrays["leaf"] = pyarrow.array(answers.leaves)
    if answers.numbers is not None:
        arrays["number"] = pyarrow.array(answers.numbers)
    alone = np.ones(len(answers.leaves), np.bool_)
    alone[list(answers.several)] = False
    leaves = np.unique(answers.leaves[alone]).tolist()
    head: dict[str, Any] = {
        "attributes": [feature.name for feature in model.schema.attributes],
        "columns": columns,
        "leaves": {leaf: book.answer(leaf) for leaf in leaves},
        "several": {row: (answer.to_dict(), answer.nodes) for row, answer in answers.several.items()},
    }
    if rules:
        head["rules"] = {leaf: book.rule(leaf) for leaf in leaves}
        head["rules_of_several"] = {row: espalier.rule_of(model, answer) for row, answer in answers.several.items()}
    return PackedRows(head, pyarrow.table(arrays))


def _columns(
    model: espalier.Model, dataset: espalier.Dataset, answers: espalier.TableAnswers, erased: Collection[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Give what the head says of each column, and the columns; of the categories only those that occur."""
    import pyarrow  # noqa: PLC0415 - as above

    places = {feature.name: place for place, feature in enumerate(model.schema.attributes)}
    columns: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for feature, column in zip(dataset.schema.features, dataset.columns, strict=True):
        if feature.name not in places:
            continue
        described: dict[str, Any] = {"name": feature.name, "kind": str(feature.kind)}
        unseen = answers.unseen[places[feature.name]]
        if feature.name in erased:
            described = {"name": feature.name, "erased": True}
            array = pyarrow.array(_erased(answers.missing[places[feature.name]], unseen))
        elif feature.coded:
            codes, at = _present(np.asarray(column))
            array = pyarrow.array(at, mask=at < 0)
            strange = set(np.unique(np.asarray(column)[unseen]).tolist()) if unseen.any() else set()
            described["categories"] = [feature.categories[code] for code in codes]
            described["unseen"] = [place for place, code in enumerate(codes) if code in strange]
        else:
            array = pyarrow.array(column, from_pandas=True)
        arrays[f"c{len(columns)}"] = array
        columns.append(described)
    return columns, arrays


class PackedRows:
    """Decisions on many rows.

    Attributes:
        n_rows: How many.
        is_regression: Whether their answers are numbers.
    """

    def __init__(self, head: Mapping[str, Any], table: Any) -> None:
        self._head = head
        self._table = table
        self.n_rows: int = table.num_rows
        self.is_regression = "number" in table.column_names

    def leaves(self) -> npt.NDArray[np.int32]:
        """Give the leaf of each row, int32 (rows); of the heaviest way where several leaves answered."""
        leaves: npt.NDArray[np.int32] = self._table.column("leaf").to_numpy()
        return leaves

    def numbers(self) -> npt.NDArray[np.float64]:
        """Give what a regression answered, float64 (rows)."""
        numbers: npt.NDArray[np.float64] = self._table.column("number").to_numpy()
        return numbers

    def labels(self) -> npt.NDArray[np.object_]:
        """Give the label of each row as JSON text, object (rows); None for a regression."""
        by_leaf = {leaf: _label_text(answer) for leaf, (answer, _) in self._head["leaves"].items()}
        distinct, places = np.unique(self.leaves(), return_inverse=True)
        labels = np.array([by_leaf.get(leaf) for leaf in distinct.tolist()], dtype=object)[places]
        for row, (answer, _) in self._head["several"].items():
            labels[row] = _label_text(answer)
        return labels

    def label_counts(self) -> dict[str, int]:
        """Give how many rows were answered with each label, as text; of a regression all with none."""
        if self.is_regression:
            return {"": self.n_rows}
        distinct, counts = np.unique(self.labels().astype(str), return_counts=True)
        labels = [orjson.loads(text) for text in distinct.tolist()]
        texts = [label if isinstance(label, str) else orjson.dumps(label).decode() for label in labels]
        return dict(zip(texts, counts.tolist(), strict=True))

    def attributes(self) -> list[str]:
        """Give the names of the model's attributes."""
        return list(self._head["attributes"])

    def flags(self) -> tuple[Flags, Flags]:
        """Say what each row had no value of, and what a category never seen of: bool (attributes, rows) both."""
        shape = len(self._head["attributes"]), self.n_rows
        missing, unseen = np.ones(shape, np.bool_), np.zeros(shape, np.bool_)
        for number, described in enumerate(self._head["columns"]):
            place = self._head["attributes"].index(described["name"])
            cells = self._table.column(f"c{number}")
            if "erased" in described:
                states = cells.to_numpy()
                missing[place], unseen[place] = states == MISSING, states == UNSEEN
                continue
            missing[place] = cells.is_null().to_numpy()
            if described.get("unseen"):
                unseen[place] = np.isin(cells.fill_null(-1).to_numpy(), described["unseen"])
        return missing, unseen

    def has_leaf(self, leaf: int) -> bool:
        """Say whether some row was answered by this leaf alone."""
        return leaf in self._head["leaves"]

    def answer(self, leaf: int) -> dict[str, Any]:
        """Give what a leaf answered the rows that it answered alone, without flags."""
        answer: dict[str, Any] = self._head["leaves"][leaf][0]
        return answer

    def rule(self, leaf: int) -> str | None:
        """Give its sentence, if sentences were put in."""
        return self._head.get("rules", {}).get(leaf)  # type: ignore[no-any-return]

    def several(self) -> dict[int, tuple[dict[str, Any], str | None]]:
        """Give the answer and the sentence of each row that several leaves answered, by its place."""
        rules = self._head.get("rules_of_several", {})
        return {row: (answer, rules.get(row)) for row, (answer, _) in self._head["several"].items()}

    def row(self, place: int) -> PackedRow:
        """Give one decision."""
        given, missing, unseen = self._cells(place)
        several = self._head["several"].get(place)
        if several is not None:
            return PackedRow(given, several[0], tuple(several[1]))
        answer, nodes = self._head["leaves"][self._table.column("leaf")[place].as_py()]
        if self.is_regression:
            answer = answer | {"value": self._table.column("number")[place].as_py()}
        flags = {"missing": missing, "unseen": unseen}
        return PackedRow(given, answer | {"flags": flags}, tuple(nodes))

    def without(self, names: Collection[str] | None = None) -> "PackedRows":
        """Give the same with the cells of some attributes erased; None: of all."""
        import pyarrow  # noqa: PLC0415 - as above

        missing, unseen = self.flags()
        columns, table = [], self._table
        for number, described in enumerate(self._head["columns"]):
            if names is None or described["name"] in names:
                place = self._head["attributes"].index(described["name"])
                states = pyarrow.array(_erased(missing[place], unseen[place]))
                table = table.set_column(number, f"c{number}", states)
                columns.append({"name": described["name"], "erased": True})
            else:
                columns.append(described)
        return PackedRows({**self._head, "columns": columns}, table)

    def to_bytes(self, *, with_rules: bool = False) -> bytes:
        """Write what `unpack` reads."""
        from pyarrow import ipc  # noqa: PLC0415 - as above

        kept = {name: part for name, part in self._head.items() if with_rules or not name.startswith("rules")}
        first = zlib.compress(orjson.dumps(kept, option=orjson.OPT_NON_STR_KEYS), 1)
        block = io.BytesIO()
        options = ipc.IpcWriteOptions(compression="zstd", use_threads=False)
        with ipc.new_stream(block, self._table.schema, options=options) as writer:
            writer.write_table(self._table)
        return len(first).to_bytes(LENGTH_BYTES) + first + block.getvalue()

    def _cells(self, place: int) -> tuple[dict[str, Any], list[str], list[str]]:
        """Give the input of a row, and what was missing and unseen."""
        features, columns, states = [], [], {}
        for number, described in enumerate(self._head["columns"]):
            name, cell = described["name"], self._table.column(f"c{number}")[place].as_py()
            if "erased" in described:
                states[name] = cell
                continue
            states[name] = MISSING if cell is None else UNSEEN if cell in described.get("unseen", ()) else KNOWN
            labels = described.get("categories")
            features.append(
                espalier.Feature(name, espalier.FeatureKind(described["kind"]), categories=tuple(labels or ()))
            )
            code = np.array([-1 if cell is None else cell], np.int32) if labels is not None else None
            columns.append(np.array([cell], np.float64) if code is None else code)
        whole = espalier.Dataset(espalier.Schema(tuple(features)), tuple(columns))
        named = {state: [] for state in (KNOWN, MISSING, UNSEEN)}  # type: dict[int, list[str]]
        for name in self._head["attributes"]:
            named[states.get(name, MISSING)].append(name)
        return (whole.rows()[0] if features else {}), named[MISSING], named[UNSEEN]


def unpack(content: bytes) -> PackedRows:
    """Read what `PackedRows.to_bytes` wrote."""
    from pyarrow import ipc  # noqa: PLC0415 - as above

    length = int.from_bytes(content[:LENGTH_BYTES])
    head = orjson.loads(zlib.decompress(content[LENGTH_BYTES : LENGTH_BYTES + length]))
    for name, part in head.items():
        if name in BY_LEAF or name.startswith("rules"):
            head[name] = {int(key): value for key, value in part.items()}
    return PackedRows(head, ipc.open_stream(content[LENGTH_BYTES + length :]).read_all())


def _erased(missing: Flags, unseen: Flags) -> npt.NDArray[np.int8]:
    return np.where(missing, MISSING, np.where(unseen, UNSEEN, KNOWN)).astype(np.int8)


def _present(column: npt.NDArray[Any]) -> tuple[list[int], npt.NDArray[np.int32]]:
    """Give the codes that occur, ascending, and of each cell the place of its own; -1 for none."""
    codes, places = np.unique(column, return_inverse=True)
    first = int(np.count_nonzero(codes < 0))
    return codes[first:].tolist(), (places - first).astype(np.int32)


def _label_text(answer: Mapping[str, Any]) -> str | None:
    return orjson.dumps(answer["label"]).decode() if "label" in answer else None
