"""A list of JSON objects read by compiled code: the columns of a table in place of an object a cell.

It takes a fifth of the time of reading JSON into objects and gathering them, no interpreter lock, and little memory,
but reads plain lists only (`espalier.kernels.json_cells`). What it does not read, its callers read as all other JSON;
the cells are the same.
"""

import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.dataset import Column, Dataset
from espalier.marks import number_from_text
from espalier.schema import Feature, FeatureKind, Label, Schema

__all__ = ["JsonReader", "JsonRows", "can_read_json_rows", "load_json_reading"]

MOST_CATEGORIES: Final = 64
"""Of an attribute: a text is compared with one after the other."""
MOST_PLANS: Final = 8
"""That a reader keeps: clients write their rows in one way or another."""
LEAST_VALUE: Final = 3
"""Bytes of a value with the colon before and the comma behind it."""
SPACE: Final = rb"[ \t\r\n]*+"
TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
MEMBER: Final = re.compile(rb"%b(%b)%b:%b(?:%b%b|[^,}\"]*+)([,}])" % (SPACE, TEXT, SPACE, SPACE, TEXT, SPACE))
"""Its name, and what follows it. Nothing depends on more being accepted here than is JSON: each row is read anew.

Nothing that was matched is given back: else a megabyte of spaces, tried at each of them, would take hours.
"""
OBJECT: Final = re.compile(rb"\[%b\{" % SPACE)

_first_use = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class JsonRows:
    """Rows of a JSON text.

    Attributes:
        dataset: Those of the attributes that the rows have, in their order.
        end: The place behind their list in the text.
    """

    dataset: Dataset
    end: int


def can_read_json_rows() -> bool:
    """Say whether the compiled code is loaded: it is not loaded by asking.

    >>> from espalier import can_read_json_rows
    >>> can_read_json_rows() in (True, False)
    True
    """
    kernel: Any = sys.modules.get("espalier.kernels.json_cells")
    return bool(getattr(getattr(kernel, "read_rows", None), "overloads", ()))


def load_json_reading(*, compiles: bool = True) -> bool:
    """Load the compiled code that reads JSON; say whether it is there. `compiles`: also where it is not kept."""
    from espalier.kernels import json_cells as kernel  # noqa: PLC0415 - numba is loaded for many rows only
    from espalier.kernels.jit import must_compile  # noqa: PLC0415 - as above

    if not hasattr(kernel.read_rows, "overloads"):
        return False  # stays Python, which orjson outdoes
    with _first_use:  # the first thread loads or compiles the code while the others wait
        if not kernel.read_rows.overloads and (compiles or not must_compile(kernel.read_rows)):
            JsonReader(EXAMPLE).read(b'[{"x":1,"y":"a"}]', 0, most_rows=1)
    return can_read_json_rows()


EXAMPLE: Final = Schema((Feature("x", FeatureKind.NUMERIC), Feature("y", FeatureKind.NOMINAL, categories=("a", "b"))))


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """How rows of the same members are read.

    Attributes:
        schema: Their members.
        told: What `espalier.kernels.json_cells.read_rows` is told of them.
        n_numbers: How many members are numbers.
        least_bytes: Of a row.
    """

    schema: Schema
    told: tuple[npt.NDArray[Any], ...]
    n_numbers: int
    least_bytes: int


class JsonReader:
    r"""Reads lists of JSON objects that have all the same members: some of a schema's attributes.

    >>> from espalier import JsonReader, Schema
    >>> schema = Schema.from_dict({"columns": [{"name": "size", "kind": "numeric"}]})
    >>> JsonReader(schema).read(b'[{"size": 1.5}, {"size": null}]', 0, most_rows=2).dataset.rows()
    [{'size': 1.5}, {'size': None}]
    """

    def __init__(self, schema: Schema, *, most_chars: int | None = None) -> None:
        """Read attributes of `schema`; texts longer than `most_chars` are not plain."""
        self._marks = schema.missing_values
        self._most_chars = most_chars
        self._attributes: Mapping[str, Feature] = {feature.name: feature for feature in schema.attributes}
        if any(number_from_text(mark) is not None for mark in schema.missing_values):
            self._attributes = {}  # each number is to be looked at
        self._plans: dict[tuple[bytes, ...], _Plan | None] = {}

    def read(self, content: bytes | bytearray, begin: int, *, most_rows: int) -> JsonRows | None:
        """Read rows.

        Args:
            content: JSON text in UTF-8.
            begin: Where the list does.
            most_rows: That are read.

        Returns:
            None where something is not plain: a value other than null, a number that a float64 holds as it is written,
            or a text that is a category; another member in one row than in the others; more rows; another order. What
            stands before and behind the list is not looked at.
        """
        plan = self._plan(tuple(_names(content, begin, most=len(self._attributes))))
        if plan is None:
            return None
        n_members = len(plan.schema.features)
        n_rows = min((len(content) - begin) // plan.least_bytes, most_rows)
        from espalier.kernels import json_cells as kernel  # noqa: PLC0415 - as above

        values = np.empty((plan.n_numbers, n_rows))
        codes = np.empty((n_members - plan.n_numbers, n_rows), np.int32)
        padded = np.frombuffer(content + bytes(kernel.PADDING), np.uint8)
        padded.flags.writeable = False  # machine code is made for one kind of array
        read: Any = kernel.read_rows
        found, end = read(padded, begin, *plan.told, values, codes)
        if found < 0:
            return None
        numbers: Iterator[Column] = iter(values[:, :found])
        texts: Iterator[Column] = iter(codes[:, :found])
        columns = tuple(next(texts) if feature.coded else next(numbers) for feature in plan.schema.features)
        return JsonRows(Dataset(plan.schema, columns), end)

    def _plan(self, spelt: tuple[bytes, ...]) -> _Plan | None:
        """Give the plan of members by their names as they are spelt; None where some cannot be read."""
        with suppress(KeyError):
            return self._plans[spelt]
        features = self._features(spelt)
        if not features:
            return None  # and nothing is kept: such names may be as long as a body
        plan = self._made(spelt, features)
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        self._plans[spelt] = plan
        return plan

    def _features(self, spelt: Sequence[bytes]) -> tuple[Feature, ...]:
        """Give the attributes that members are by their names; none where one is no attribute, or there twice."""
        try:
            names = [json.loads(name.decode()) for name in spelt]
        except ValueError:
            return ()
        if len(set(names)) < len(names) or not self._attributes.keys() >= set(names):
            return ()
        return tuple(self._attributes[name] for name in names)

    def _made(self, spelt: Sequence[bytes], features: tuple[Feature, ...]) -> _Plan | None:
        from espalier.kernels.decimals import POWERS_OF_FIVE  # noqa: PLC0415 - as above

        if any(
            feature.kind is FeatureKind.DATETIME or len(feature.categories) > MOST_CATEGORIES for feature in features
        ):
            return None
        texts = [self._texts(feature) for feature in features]
        if any(feature.coded != bool(known) for feature, known in zip(features, texts, strict=True)):
            return None
        codes = [code for known in texts for code in known.values()]
        told = (
            *_together(spelt),
            POWERS_OF_FIVE,
            *_together([text for known in texts for text in known]),
            np.array(codes, np.int32),
            np.cumsum([0, *map(len, texts)], dtype=np.int32),
        )
        least_bytes = sum(len(name) + LEAST_VALUE for name in spelt) + 1
        return _Plan(Schema(features, self._marks), told, sum(not feature.coded for feature in features), least_bytes)

    def _texts(self, feature: Feature) -> dict[bytes, int]:
        """Give the code of each category that a text stands for, by the ways to write it down."""
        return {spelt: code for code, label in enumerate(feature.categories) for spelt in self._spelt(label)}

    def _spelt(self, label: Label) -> Iterator[bytes]:
        if isinstance(label, str) and label not in self._marks and len(label) <= (self._most_chars or len(label)):
            yield json.dumps(label, ensure_ascii=False).encode()
            yield json.dumps(label).encode()


def _names(content: bytes | bytearray, begin: int, *, most: int) -> Iterator[bytes]:
    """Give the names of the first object's members as they are spelt; of more than `most`, one more."""
    first = OBJECT.match(content, begin)
    at = 0 if first is None else first.end()
    for _ in range(0 if first is None else most + 1):
        member = MEMBER.match(content, at)
        if member is None:
            return
        yield member[1]
        if member[2] == b"}":
            return
        at = member.end()


def _together(texts: Iterable[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Give texts one after the other, and where each ends."""
    listed = list(texts)
    ends = np.cumsum([len(text) for text in listed], dtype=np.int32)
    return np.frombuffer(b"".join(listed), np.uint8), ends
