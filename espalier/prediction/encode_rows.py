"""Encode rows as numbers, by a schema, before they are predicted.

A row maps attribute names to JSON values or to scalars of Python, numpy or pandas. A value is missing if the key is
absent or the cell is null, NaN, NaT or NA. It is also missing if `missing_values` of the schema lists it, unless it is
a category of the attribute. A category that the schema does not list is flagged, and then handled like a missing value.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final, NamedTuple

from espalier.data.column import JSON_TYPES, UNREADABLE, UnreadableError, plain_cell
from espalier.data.instants import parse_instant
from espalier.data.labels import MAX_INTEGER, NOT_TEXT, category_codes, is_not_text, meaning
from espalier.data.missing_values import MissingValues
from espalier.data.number_parsing import number_from_text, plain_number
from espalier.data.schema import Feature, FeatureKind, Role, Schema
from espalier.errors import Fault, RowError, listed, pointer, within

MISSING: Final = -1.0
"""Code of a missing category; NaN is a missing number."""
UNSEEN: Final = -2.0
"""Code of a category that the schema does not list."""
NUMBERS: Final = (int, float)
NUMBER_TYPES: Final = frozenset(NUMBERS)
"""The types of numbers; true and false have another type."""
MAX_FLOAT: Final = sys.float_info.max


class EncodedRow(NamedTuple):
    """One row as numbers.

    Attributes:
        values: A number, seconds since 1970-01-01 UTC or the code of a category; unknown values are NaN or negative.
        missing: Names of attributes without a value; if the model imputes, `values` has replacements for them.
        unseen: Names of attributes whose category the schema does not list; imputed like missing values.
    """

    values: tuple[float, ...]
    missing: tuple[str, ...]
    unseen: tuple[str, ...]

    def stood_in(self) -> dict[str, str]:
        """Return the names of the attributes without a known value, each with the reason: ``missing`` or ``unseen``."""
        return dict.fromkeys(self.missing, "missing") | dict.fromkeys(self.unseen, "unseen")


class RowEncoder:
    """Encodes rows as numbers by a schema.

    Attributes:
        names: The names of the attributes, in the schema's order.
        is_number: For each attribute, whether it is encoded as a number (else as a code).
        imputed: For each attribute, the replacement of a missing or unseen value; None without imputation.
    """

    def __init__(self, schema: Schema, imputed: Sequence[float] | None) -> None:
        self.names = [feature.name for feature in schema.attributes]
        self.is_number = [not feature.coded for feature in schema.attributes]
        self.imputed = imputed
        self._readers = [cell_reader(feature) for feature in schema.attributes]
        self._legal = frozenset(feature.name for feature in schema.features)
        missing = MissingValues.of(schema.missing_values)
        # In a plain attribute, every finite number is legal and not missing, so most cells need no other check.
        plain = [feature.kind is FeatureKind.NUMERIC and not missing.numbers for feature in schema.attributes]
        own = [missing.besides(feature.categories) for feature in schema.attributes]
        texts, numbers = [each.texts for each in own], [each.numbers for each in own]
        self._columns = list(zip(self.names, self._readers, self.is_number, plain, texts, numbers, strict=True))
        self._all_plain = all(plain)

    def __call__(self, row: Mapping[str, Any]) -> EncodedRow:
        """Encode one row.

        Raises:
            RowError: The row is no object (path ""), or has faults, each with a path ``/{attribute}``.
        """
        if not isinstance(row, Mapping):
            raise RowError([Fault("", "wrong_type", "a row must be an object of attribute names and values")])
        get: Callable[[str], Any] = row.get
        legal = self._legal.issuperset(row)
        if legal and self._all_plain:
            numbers = _numbers(tuple(map(get, self.names)))
            if numbers is not None:
                return EncodedRow(numbers, (), ())
        unknown = () if legal else [name for name in row if name not in self._legal]
        return self._cell_by_cell(get, [unknown_attribute(pointer(str(name)), self.names) for name in unknown])

    def _cell_by_cell(self, get: Callable[[str], Any], known_faults: Iterable[Fault]) -> EncodedRow:
        """Encode a row one cell at a time; `known_faults` report its unknown attributes."""
        faults = list(known_faults)
        values: list[float] = []
        missing, unseen = [], []
        for name, reader, is_number, is_plain, missing_texts, missing_numbers in self._columns:
            cell = get(name)
            if type(cell) not in JSON_TYPES:
                cell = python_cell(cell, is_number=is_number)
            if is_plain and type(cell) in NUMBERS and -MAX_FLOAT <= cell <= MAX_FLOAT:
                values.append(float(cell))
                continue
            if (
                cell is None
                or (isinstance(cell, str) and cell in missing_texts)
                or cell != cell  # noqa: PLR0124
                or (missing_numbers and type(cell) in NUMBERS and cell in missing_numbers)
            ):
                missing.append(name)
                values.append(math.nan if is_number else MISSING)
                continue
            value = reader(cell)
            if isinstance(value, str):
                faults.append(Fault(pointer(name), "wrong_type", value))
            elif value == UNSEEN and not is_number:
                if isinstance(cell, str) and is_not_text(cell):
                    faults.append(Fault(pointer(name), "characters", f"a category {NOT_TEXT}"))
                unseen.append(name)
                values.append(UNSEEN)
            else:
                values.append(value)
        RowError.raise_for(faults)
        if self.imputed is not None and (missing or unseen):
            values = [
                replacement if value != value or (value < 0 and not is_number) else value  # noqa: PLR0124
                for value, replacement, is_number in zip(values, self.imputed, self.is_number, strict=True)
            ]
        return EncodedRow(tuple(values), tuple(missing), tuple(unseen))


def unknown_attribute(path: str, names: Sequence[str]) -> Fault:
    """Return the fault of an unknown attribute at `path`. The message lists the attributes' `names`."""
    return Fault(path, "unknown_attribute", f"there is no such attribute; there are: {listed(names)}")


def _numbers(cells: tuple[Any, ...]) -> tuple[float, ...] | None:
    """Return the cells as floats; None if a cell is neither int nor float, or if the sum of the cells is not finite."""
    if not NUMBER_TYPES.issuperset(map(type, cells)):
        return None
    try:
        numbers = tuple(map(float, cells))
    except OverflowError:
        return None
    # A sum is finite only if all its terms are.
    return numbers if math.isfinite(sum(numbers)) else None


def rows_to_predict(schema: Schema, rows: Any) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a `Dataset` or table, with the attributes of `schema` only; return a list of rows unchanged.

    Raises:
        RowError: One row is given instead of a list, or something that has no rows.
        DataError: As in `attributes_of`.
    """
    if isinstance(rows, list):
        return rows
    is_frame = type(rows).__module__.partition(".")[0] in ("pandas", "polars")
    is_table = is_frame or any(hasattr(type(rows), name) for name in ("fingerprint", "__arrow_c_stream__"))
    if isinstance(rows, Mapping | str | bytes) or not (is_table or hasattr(rows, "__iter__")):
        raise RowError([Fault("", "wrong_type", "must be a list of rows or a table; of a single row, make a list")])
    if not is_table:
        return rows  # type: ignore[no-any-return]
    from espalier.data.readers import attributes_of  # noqa: PLC0415 - predictions of lists do not wait for this

    return attributes_of(rows, schema).rows()


def encode_rows(encode: RowEncoder, rows: Sequence[Mapping[str, Any]]) -> list[EncodedRow]:
    """Return the encoded rows.

    Raises:
        RowError: Rows have faults; each has a path ``/{row}/{attribute}``, or ``/{row}`` if the row is no object.
    """
    encoded = list(encode_each(encode, rows))
    errors = [(place, row) for place, row in enumerate(encoded) if isinstance(row, RowError)]
    RowError.raise_for(fault for place, error in errors for fault in within(pointer(place), error.faults))
    return [row for row in encoded if not isinstance(row, RowError)]


def encode_each(encode: RowEncoder, rows: Iterable[Mapping[str, Any]]) -> Iterator[EncodedRow | RowError]:
    """Yield each encoded row, or the error of a row that cannot be encoded."""
    for row in rows:
        try:
            yield encode(row)
        except RowError as error:
            yield error


def python_cell(cell: Any, *, is_number: bool) -> Any:
    """Convert a cell of a type that JSON lacks; None if the cell is missing, `UNREADABLE` if its type is not legal.

    In an attribute of categories, decimals and dates become text.
    """
    try:
        plain = plain_cell(cell)
    except UnreadableError:
        return UNREADABLE
    if is_number and isinstance(cell, Decimal) and plain is not None:
        return float(plain)
    return plain if is_number or not isinstance(plain, date) else plain.isoformat()


def cell_reader(feature: Feature) -> Callable[[Any], float | str]:
    """Return a function that encodes a cell with a value. If the cell is not legal, the function returns a message."""
    if feature.kind is FeatureKind.DATETIME:
        return _read_instant
    if not feature.coded:
        return _read_number
    codes = category_codes(feature.categories)
    # A column that was empty in training has no known type, so any text, number or boolean is unseen.
    types = {_json_type(label) for label in feature.categories} or {"text", "a number", "true or false"}
    legal = f"must be {' or '.join(sorted(types))}, or null for missing"

    def read(cell: Any) -> float | str:
        code = codes.get((type(cell).__name__, cell)) if isinstance(cell, str | int | float) else None
        if code is not None:
            return float(code)
        # Text formats hold an unseen number or truth value as text, which is legal if categories have this type.
        is_number = "a number" in types and plain_number(cell) is not None
        is_truth = "true or false" in types and isinstance(meaning(cell), bool)
        return UNSEEN if _json_type(cell) in types or is_number or is_truth else legal

    return read


def rows_from_text(schema: Schema, names: Sequence[str], lines: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Read lines of a text format as rows. A cell becomes the number or the category that its text stands for.

    An empty cell is None. All other texts, such as dates, stay text. If a text is illegal, the prediction reports it.
    """
    by_name = {feature.name: feature for feature in schema.features if feature.role is Role.ATTRIBUTE}
    missing = MissingValues.of(schema.missing_values)
    readers = [_text_reader(by_name.get(name), missing) for name in names]
    return [
        {name: None if cell == "" else read(cell) for name, read, cell in zip(names, readers, line, strict=True)}
        for line in lines
    ]


def _text_reader(feature: Feature | None, missing: MissingValues) -> Callable[[str], Any]:
    if feature is None or feature.kind is FeatureKind.DATETIME:
        return lambda cell: cell
    if not feature.coded:
        return lambda cell: cell if (number := number_from_text(cell)) is None else number
    categories, absent = feature.categories, missing.besides(feature.categories).texts
    codes = category_codes(categories)
    return lambda cell: cell if cell in absent or (code := codes.get(("str", cell))) is None else categories[code]


def _read_number(cell: Any) -> float | str:
    value = None if isinstance(cell, str) else plain_number(cell)
    return "must be a finite number, or null for missing" if value is None else value


def _read_instant(cell: Any) -> float | str:
    value = parse_instant(cell.isoformat() if isinstance(cell, date) else cell)
    return "must be an ISO 8601 date or time as text, or null for missing" if value is None else value


def _json_type(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true or false"
    if isinstance(cell, int | float):
        # A table has such a whole number as text, because JSON readers may round it.
        return "text" if isinstance(cell, int) and abs(cell) > MAX_INTEGER else "a number"
    return "text" if isinstance(cell, str) else "something else"
