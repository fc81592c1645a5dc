"""Decisions on many rows as one block of bytes: the cells in columns, what a leaf answers once, not once a row.

::

    head      JSON, compressed     the attributes; what each leaf answered and the nodes on the way to it; the whole
                                   answer of each row that several leaves answered together; how the arrays are packed
    block     JSON, compressed     of a small tree, what all its leaves answer, written once and not in each head
    arrays    one after the other  the columns that were given, numbers or places in a list of labels in the head; leaf;
                                   number, of a regression

So a record says by itself what was answered. Of an erased column only KNOWN, MISSING or UNSEEN is left of each cell.
The first four bytes are the length of the head; of the arrays see `service.array_packing`. Records from before have an
Arrow table in their place, which pyarrow reads.
"""

import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

import espalier
from service.array_packing import pack_arrays, packed_size, unpack_array
from service.leaf_book import book_of, compressed

__all__ = ["PackedRow", "PackedRows", "pack", "unpack"]

Flags = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]

LENGTH_BYTES = 4
KNOWN, MISSING, UNSEEN = 0, 1, 2
BY_LEAF = ("leaves", "several", "rules")  # parts of the head whose keys are numbers


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
    book = book_of(model)
    described, columns = _columns(model, dataset, answers, erased)
    alone = np.delete(answers.leaves, list(answers.several)) if answers.several else answers.leaves
    counts = dict(zip(*(array.tolist() for array in np.unique(alone, return_counts=True)), strict=True))
    head: dict[str, Any] = {
        "attributes": [feature.name for feature in model.schema.attributes],
        "columns": described,
        "leaves": {leaf: book.answer(leaf) for leaf in counts},
        "several": {row: (answer.to_dict(), answer.nodes) for row, answer in answers.several.items()},
    }
    if rules:
        head["rules"] = {leaf: book.rule(leaf) for leaf in head["leaves"]}
        head["rules_of_several"] = {row: espalier.rule_of(model, answer) for row, answer in answers.several.items()}
    rows = PackedRows(head, columns, answers.leaves, answers.numbers)
    rows.know(
        flags=(answers.missing, answers.unseen), counts=counts, block=None if answers.several else book.block(counts)
    )
    return rows


def _columns(
    model: espalier.Model, dataset: espalier.Dataset, answers: espalier.TableAnswers, erased: Collection[str]
) -> tuple[list[dict[str, Any]], list[Column]]:
    """Give what the head says of each column, and the columns; of the categories only those that occur."""
    places = {feature.name: place for place, feature in enumerate(model.schema.attributes)}
    descriptions: list[dict[str, Any]] = []
    columns: list[Column] = []
    for feature, given in zip(dataset.schema.features, dataset.columns, strict=True):
        if feature.name not in places:
            continue
        described: dict[str, Any] = {"name": feature.name, "kind": str(feature.kind)}
        unseen = answers.unseen[places[feature.name]]
        column = np.asarray(given)
        if feature.name in erased:
            described = {"name": feature.name, "erased": True}
            column = _erased(answers.missing[places[feature.name]], unseen)
        elif feature.coded:
            codes, at = _present(column)
            strange = set(np.unique(column[unseen]).tolist()) if unseen.any() else set()
            described["categories"] = [feature.categories[code] for code in codes]
            described["unseen"] = [place for place, code in enumerate(codes) if code in strange]
            column = at
        columns.append(column)
        descriptions.append(described)
    return descriptions, columns


class PackedRows:
    """Decisions on many rows.

    Attributes:
        n_rows: How many.
        is_regression: Whether their answers are numbers.
    """

    def __init__(
        self,
        head: Mapping[str, Any],
        columns: Sequence[Column],
        leaves: npt.NDArray[np.int32],
        numbers: npt.NDArray[np.float64] | None,
    ) -> None:
        self._head = head
        self._columns = columns
        self._leaves = leaves
        self._numbers = numbers
        self._flags: tuple[Flags, Flags] | None = None
        self._counts: Mapping[int, int] | None = None
        self._block: bytes | None = None
        self.n_rows = len(leaves)
        self.is_regression = numbers is not None

    def know(self, *, flags: tuple[Flags, Flags], counts: Mapping[int, int], block: bytes | None) -> None:
        """Take what is known already: flags, rows by the leaf that answered them alone, `LeafBook.block`."""
        self._flags, self._counts, self._block = flags, counts, block

    def leaves(self) -> npt.NDArray[np.int32]:
        """Give the leaf of each row, int32 (rows); of the heaviest way where several leaves answered."""
        return self._leaves

    def numbers(self) -> npt.NDArray[np.float64]:
        """Give what a regression answered, float64 (rows)."""
        assert self._numbers is not None  # noqa: S101 - who asks has looked at `is_regression`
        return self._numbers

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
        found: Counter[str] = Counter()
        counts = self._counts
        if counts is None:
            alone = np.delete(self._leaves, list(self._head["several"])) if self._head["several"] else self._leaves
            counts = Counter(alone.tolist())
        for leaf, n_rows in counts.items():
            found[_label_name(self._head["leaves"][leaf][0])] += n_rows
        found.update(_label_name(answer) for answer, _ in self._head["several"].values())
        return dict(found)

    def attributes(self) -> list[str]:
        """Give the names of the model's attributes."""
        return list(self._head["attributes"])

    def flags(self) -> tuple[Flags, Flags]:
        """Say what each row had no value of, and what a category never seen of: bool (attributes, rows) both."""
        if self._flags is None:
            self._flags = self._found_flags()
        return self._flags

    def _found_flags(self) -> tuple[Flags, Flags]:
        shape = len(self._head["attributes"]), self.n_rows
        missing, unseen = np.ones(shape, np.bool_), np.zeros(shape, np.bool_)
        for described, column in zip(self._head["columns"], self._columns, strict=True):
            place = self._head["attributes"].index(described["name"])
            if "erased" in described:
                missing[place], unseen[place] = column == MISSING, column == UNSEEN
                continue
            missing[place] = column < 0 if "categories" in described else np.isnan(column)
            if described.get("unseen"):
                unseen[place] = np.isin(column, described["unseen"])
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
        answer, nodes = self._head["leaves"][int(self._leaves[place])]
        if self._numbers is not None:
            answer = answer | {"value": float(self._numbers[place])}
        flags = {"missing": missing, "unseen": unseen}
        return PackedRow(given, answer | {"flags": flags}, tuple(nodes))

    def without(self, names: Collection[str] | None = None) -> "PackedRows":
        """Give the same with the cells of some attributes erased; None: of all."""
        missing, unseen = self.flags()
        descriptions, columns = [], []
        for described, column in zip(self._head["columns"], self._columns, strict=True):
            if names is None or described["name"] in names:
                place = self._head["attributes"].index(described["name"])
                descriptions.append({"name": described["name"], "erased": True})
                columns.append(_erased(missing[place], unseen[place]))
            else:
                descriptions.append(described)
                columns.append(column)
        return PackedRows({**self._head, "columns": descriptions}, columns, self._leaves, self._numbers)

    def to_bytes(self, *, with_rules: bool = False) -> bytes:
        """Write what `unpack` reads."""
        numbers = [] if self._numbers is None else [self._numbers]
        packed = list(pack_arrays([*self._columns, self._leaves, *numbers]))
        kept = {name: part for name, part in self._head.items() if with_rules or not name.startswith("rules")}
        kept |= {"n_rows": self.n_rows, "is_regression": self.is_regression, "forms": [each.form for each in packed]}
        block = self._block or b""
        if block:
            kept["leaves"] = {}
            kept["block"] = len(block)
        first = compressed(kept)
        arrays = (part.data for each in packed for part in each.parts)
        return b"".join((len(first).to_bytes(LENGTH_BYTES), first, block, *arrays))

    def _cells(self, place: int) -> tuple[dict[str, Any], list[str], list[str]]:
        """Give the input of a row, and what was missing and unseen."""
        features, columns, states = [], [], {}
        for described, column in zip(self._head["columns"], self._columns, strict=True):
            name, cell = described["name"], column[place].item()
            if "erased" in described:
                states[name] = cell
                continue
            labels = described.get("categories")
            is_missing = cell != cell if labels is None else cell < 0  # noqa: PLR0124 - of NaN alone it is so
            states[name] = MISSING if is_missing else UNSEEN if cell in described.get("unseen", ()) else KNOWN
            features.append(
                espalier.Feature(name, espalier.FeatureKind(described["kind"]), categories=tuple(labels or ()))
            )
            columns.append(column[place : place + 1])
        whole = espalier.Dataset(espalier.Schema(tuple(features)), tuple(columns))
        named = {state: [] for state in (KNOWN, MISSING, UNSEEN)}  # type: dict[int, list[str]]
        for name in self._head["attributes"]:
            named[states.get(name, MISSING)].append(name)
        return (whole.rows()[0] if features else {}), named[MISSING], named[UNSEEN]


def unpack(content: bytes) -> PackedRows:
    """Read what `PackedRows.to_bytes` wrote."""
    length = int.from_bytes(content[:LENGTH_BYTES])
    head = orjson.loads(zlib.decompress(content[LENGTH_BYTES : LENGTH_BYTES + length]))
    for name, part in head.items():
        if name in BY_LEAF or name.startswith("rules"):
            head[name] = {int(key): value for key, value in part.items()}
    arrays = memoryview(content)[LENGTH_BYTES + length :]
    n_bytes = head.pop("block", 0)
    if n_bytes:
        head["leaves"] = {int(leaf): answer for leaf, answer in orjson.loads(zlib.decompress(arrays[:n_bytes])).items()}
        arrays = arrays[n_bytes:]
    columns, leaves, numbers = _unpacked(head, arrays) if "forms" in head else _from_arrow(head, arrays)
    return PackedRows(head, columns, leaves, numbers)


Arrays = tuple[list[Column], npt.NDArray[np.int32], npt.NDArray[np.float64] | None]


def _unpacked(head: dict[str, Any], content: memoryview) -> Arrays:
    """Read the arrays behind a head, and take out of it what says how."""
    forms, n_rows, is_regression = head.pop("forms"), head.pop("n_rows"), head.pop("is_regression")
    ends = accumulate((packed_size(form, n_rows) for form in forms), initial=0)
    kinds = [np.float64 if _has_numbers(described) else np.int32 for described in head["columns"]]
    arrays = []
    for kind, form, (begin, end) in zip([*kinds, np.int32, np.float64], forms, pairwise(ends), strict=False):
        arrays.append(np.empty(n_rows, kind))
        unpack_array(form, content[begin:end], arrays[-1])
    n_columns = len(kinds)
    return arrays[:n_columns], arrays[n_columns], arrays[n_columns + 1] if is_regression else None


def _from_arrow(head: Mapping[str, Any], content: memoryview) -> Arrays:
    """Read the Arrow table of a record from before."""
    from pyarrow import ipc  # noqa: PLC0415 - for such records only

    table = ipc.open_stream(content).read_all()
    columns = []
    for number, described in enumerate(head["columns"]):
        cells = table.column(f"c{number}")
        if _has_numbers(described):
            columns.append(cells.to_numpy().astype(np.float64))
        else:
            columns.append(cells.fill_null(-1).to_numpy().astype(np.int32))
    numbers = table.column("number").to_numpy() if "number" in table.column_names else None
    return columns, table.column("leaf").to_numpy(), numbers


def _has_numbers(described: Mapping[str, Any]) -> bool:
    return "erased" not in described and "categories" not in described


def _erased(missing: Flags, unseen: Flags) -> npt.NDArray[np.int32]:
    return np.where(missing, MISSING, np.where(unseen, UNSEEN, KNOWN)).astype(np.int32)


def _present(column: npt.NDArray[Any]) -> tuple[list[int], npt.NDArray[np.int32]]:
    """Give the codes that occur, ascending, and of each cell the place of its own; -1 for none."""
    codes, places = np.unique(column, return_inverse=True)
    first = int(np.count_nonzero(codes < 0))
    return codes[first:].tolist(), (places - first).astype(np.int32)


def _label_text(answer: Mapping[str, Any]) -> str | None:
    return orjson.dumps(answer["label"]).decode() if "label" in answer else None


def _label_name(answer: Mapping[str, Any]) -> str:
    label = answer["label"]
    return label if isinstance(label, str) else orjson.dumps(label).decode()
