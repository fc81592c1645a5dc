"""Columns of tables that other libraries hold: Arrow streams, pandas, polars and pyarrow tables.

None of those libraries is imported here unless the table that was given comes from it. Numbers, instants and codes are
taken as whole arrays; Python objects are made only for the distinct texts of a column.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.errors import DataError, Fault, pointer
from espalier.frame_cells import (
    MICROSECONDS,
    plain_cell,
    seconds_of,
    transposed,
)
from espalier.frame_column import (
    FrameColumn,
    UnreadableError,
    column_from_cells,
    column_from_objects,
    column_of_codes,
    plain_labels,
)
from espalier.schema import FeatureKind, Label

__all__ = [
    "column_from_array",
    "columns_from_arrays",
    "columns_from_matrix",
    "frame_columns",
    "is_frame",
]

Flags = npt.NDArray[np.bool_]
NO_LABELS: Final[tuple[Label, ...]] = ()
Reader = Callable[[], FrameColumn]


def is_frame(table: object) -> bool:
    """Say whether `table` has named columns that `frame_columns` can read."""
    return any(fits(table) for fits, _ in FRAME_READERS)


def frame_columns(table: Any) -> list[FrameColumn]:
    """Read every column of a pandas, polars or pyarrow table, or of anything with ``__arrow_c_stream__``.

    A column of texts is nominal, one of true and false boolean, an ordered categorical ordinal, one of dates or times
    datetime (without a time zone it is taken as UTC), any other one of numbers numeric.

    Raises:
        DataError: It is none of these, a library that is needed to read it is not installed, two columns have one name,
            or a column is of a type that cannot be read; every such column.
    """
    reader = next((read for fits, read in FRAME_READERS if fits(table)), None)
    if reader is None:
        message = "must be a pandas, polars or pyarrow table, or an object with __arrow_c_stream__"
        raise DataError([Fault("", "wrong_type", f"{message}, not a {type(table).__name__}")])
    return _read_all(reader(table))


def column_from_array(name: str, values: npt.NDArray[Any]) -> FrameColumn:
    """Give a one-dimensional numpy array of numbers, dates or Python objects as a column.

    Raises:
        TypeError: An object is neither text, a number, a date nor missing.
    """
    if values.dtype.kind in "fiub":
        return FrameColumn(name, FeatureKind.NUMERIC, values)
    if values.dtype.kind == "M":
        return FrameColumn(name, FeatureKind.DATETIME, seconds_of(values))
    return column_from_cells(name, values.tolist())


def columns_from_arrays(columns: Mapping[str, Any]) -> list[FrameColumn]:
    """Give columns that are one-dimensional numpy arrays or lists of Python objects.

    Raises:
        DataError: A column is of a type that cannot be read; every such column.
    """
    return _read_all([(name, partial(_array_column, name, cells)) for name, cells in columns.items()])


def columns_from_matrix(matrix: npt.NDArray[Any]) -> list[FrameColumn]:
    """Give the columns of an array of numbers (rows, columns), called x0, x1, …, as floats of their own."""
    values = transposed(matrix)
    return [FrameColumn(f"x{place}", FeatureKind.NUMERIC, column, owned=True) for place, column in enumerate(values)]


def _read_all(readers: Iterable[tuple[str, Reader]]) -> list[FrameColumn]:
    faults: list[Fault] = []
    columns: list[FrameColumn] = []
    seen: set[str] = set()
    for name, read in readers:
        if name in seen:
            faults.append(Fault(pointer(name), "duplicate", f"two columns are called {name!r}"))
        seen.add(name)
        try:
            columns.append(read())
        except UnreadableError as error:
            message = f"columns of the type {error} cannot be read: give numbers, texts, dates, true and false"
            faults.append(Fault(pointer(name), "wrong_type", message))
    if faults:
        raise DataError(faults)
    return columns


def _array_column(name: str, cells: Any) -> FrameColumn:
    if not isinstance(cells, np.ndarray):
        return column_from_objects(name, cells, "list")
    if cells.dtype.kind == "b":
        return FrameColumn(name, FeatureKind.BOOLEAN, cells.astype(np.int8), labels=(False, True))
    try:
        return column_from_array(name, cells)
    except TypeError:
        raise UnreadableError(cells.dtype) from None


def _pandas_columns(table: Any) -> list[tuple[str, Reader]]:
    names = [str(name) for name in table.columns]
    return [(name, partial(_pandas_column, name, table.iloc[:, place])) for place, name in enumerate(names)]


def _pandas_column(name: str, series: Any) -> FrameColumn:
    if hasattr(series, "cat"):
        labels = plain_labels(series.cat.categories.tolist(), str(series.dtype))
        kind = FeatureKind.ORDINAL if series.cat.ordered else FeatureKind.NOMINAL
        return FrameColumn(name, kind, series.cat.codes.to_numpy(), labels=labels)
    return PANDAS_READERS.get(series.dtype.kind, _pandas_objects)(name, series)


def _pandas_instants(name: str, series: Any) -> FrameColumn:
    return FrameColumn(name, FeatureKind.DATETIME, seconds_of(series.to_numpy(dtype="datetime64[us]")))


def _pandas_floats(name: str, series: Any) -> FrameColumn:
    return FrameColumn(name, FeatureKind.NUMERIC, series.to_numpy(dtype=np.float64, na_value=np.nan))


def _pandas_whole(name: str, series: Any) -> FrameColumn:
    absent = series.isna().to_numpy(dtype=np.bool_)
    dtype = np.uint64 if series.dtype.kind == "u" else np.int64
    values = series.to_numpy(dtype=dtype, na_value=0) if absent.any() else series.to_numpy(dtype=dtype)
    return FrameColumn(name, FeatureKind.NUMERIC, values, absent if absent.any() else None)


def _pandas_booleans(name: str, series: Any) -> FrameColumn:
    known = series.notna().to_numpy(dtype=np.bool_)
    codes = np.full(len(series), -1, dtype=np.int8)
    codes[known] = series[known].to_numpy(dtype=np.bool_)
    return FrameColumn(name, FeatureKind.BOOLEAN, codes, labels=(False, True))


def _pandas_objects(name: str, series: Any) -> FrameColumn:
    if series.dtype.kind in "mc":
        raise UnreadableError(series.dtype)
    try:
        codes, distinct = series.factorize()
    except TypeError:  # lists and the like cannot be told apart by hashing
        raise UnreadableError(series.dtype) from None
    if not all(isinstance(value, str) for value in distinct.tolist()):
        # Factorizing takes 1, 1.0 and True for one value.
        return column_from_objects(name, series.to_numpy(dtype=object, na_value=None).tolist(), str(series.dtype))
    return FrameColumn(name, FeatureKind.NOMINAL, codes, labels=tuple(distinct.tolist()))


PANDAS_READERS: Final[Mapping[str, Callable[[str, Any], FrameColumn]]] = {
    "M": _pandas_instants,
    "f": _pandas_floats,
    "i": _pandas_whole,
    "u": _pandas_whole,
    "b": _pandas_booleans,
}
"""By numpy's letter for a kind of type."""


def _polars_columns(table: Any) -> list[tuple[str, Reader]]:
    table = table.collect() if hasattr(table, "collect") else table
    return [(series.name, partial(_polars_column, series.name, series)) for series in table.get_columns()]


def _polars_column(name: str, series: Any) -> FrameColumn:
    dtype = series.dtype
    family = "Integer" if dtype.is_integer() else "Float" if dtype.is_float() else dtype.base_type().__name__
    if family not in POLARS_READERS:
        raise UnreadableError(dtype)
    return POLARS_READERS[family](name, series, series.is_null().to_numpy())


def _polars_floats(name: str, series: Any, absent: Flags) -> FrameColumn:
    del absent  # becomes NaN
    return FrameColumn(name, FeatureKind.NUMERIC, series.cast(float).to_numpy())


def _polars_whole(name: str, series: Any, absent: Flags) -> FrameColumn:
    return FrameColumn(name, FeatureKind.NUMERIC, series.fill_null(0).to_numpy(), absent if absent.any() else None)


def _polars_booleans(name: str, series: Any, absent: Flags) -> FrameColumn:
    codes = np.where(absent, -1, series.fill_null(value=False).to_numpy())
    return FrameColumn(name, FeatureKind.BOOLEAN, codes, labels=(False, True))


def _polars_instants(name: str, series: Any, absent: Flags) -> FrameColumn:
    micros = series.dt.timestamp("us").fill_null(0).to_numpy()
    return FrameColumn(name, FeatureKind.DATETIME, np.where(absent, np.nan, micros / MICROSECONDS))


def _polars_enum(name: str, series: Any, absent: Flags) -> FrameColumn:
    codes = np.where(absent, -1, series.to_physical().fill_null(0).to_numpy().astype(np.int64))
    return FrameColumn(name, FeatureKind.ORDINAL, codes, labels=tuple(series.dtype.categories.to_list()))


def _polars_texts(name: str, series: Any, absent: Flags) -> FrameColumn:
    del absent  # has no rank
    texts = series.cast(str)
    # The dense rank of a text among the sorted distinct texts is its code, counted from 1.
    codes = texts.rank("dense").fill_null(0).to_numpy().astype(np.int64) - 1
    return FrameColumn(name, FeatureKind.NOMINAL, codes, labels=tuple(texts.drop_nulls().unique().sort().to_list()))


def _polars_objects(name: str, series: Any, absent: Flags) -> FrameColumn:
    del absent
    return column_from_objects(name, series.to_list(), str(series.dtype))


POLARS_READERS: Final[Mapping[str, Callable[[str, Any, Flags], FrameColumn]]] = {
    "Float": _polars_floats,
    "Decimal": _polars_floats,
    "Integer": _polars_whole,
    "Boolean": _polars_booleans,
    "Date": _polars_instants,
    "Datetime": _polars_instants,
    "Enum": _polars_enum,
    "Categorical": _polars_texts,
    "String": _polars_texts,
    "Object": _polars_objects,
    "Null": _polars_objects,
}
"""By family of types."""


def _arrow_columns(table: Any) -> list[tuple[str, Reader]]:
    try:
        arrow = import_module("pyarrow")
    except ImportError:
        message = f"a {type(table).__name__} is read through its Arrow stream, which needs pyarrow 15 or later"
        raise DataError([Fault("", "not_installed", message)]) from None
    try:
        whole = table if isinstance(table, arrow.Table) else arrow.RecordBatchReader.from_stream(table).read_all()
    except (arrow.ArrowException, AttributeError, TypeError) as error:
        message = f"the table's Arrow stream cannot be read: {type(error).__name__}"
        raise DataError([Fault("", "wrong_type", message)]) from error
    return [
        (name, partial(_arrow_column, name, column, arrow))
        for name, column in zip(whole.column_names, whole.columns, strict=True)
    ]


def _arrow_column(name: str, chunks: Any, arrow: Any) -> FrameColumn:
    types, given = arrow.types, chunks.type
    absent = chunks.is_null().to_numpy()
    if types.is_floating(given) or types.is_decimal(given):
        column = FrameColumn(name, FeatureKind.NUMERIC, chunks.cast(arrow.float64()).to_numpy())
    elif types.is_integer(given):
        values = chunks.fill_null(0) if absent.any() else chunks
        column = FrameColumn(name, FeatureKind.NUMERIC, values.to_numpy(), absent if absent.any() else None)
    elif types.is_boolean(given):
        codes = np.where(absent, -1, chunks.cast(arrow.int8()).fill_null(0).to_numpy())
        column = FrameColumn(name, FeatureKind.BOOLEAN, codes, labels=(False, True))
    elif types.is_timestamp(given) or types.is_date(given):
        zone = given.tz if types.is_timestamp(given) else None
        micros = chunks.cast(arrow.timestamp("us", tz=zone), safe=False).cast(arrow.int64()).fill_null(0).to_numpy()
        column = FrameColumn(name, FeatureKind.DATETIME, np.where(absent, np.nan, micros / MICROSECONDS))
    elif types.is_null(given):
        column = FrameColumn(name, FeatureKind.NOMINAL, np.full(len(chunks), -1), labels=NO_LABELS)
    else:
        column = _arrow_categories(name, chunks, arrow)
    return column


def _arrow_categories(name: str, chunks: Any, arrow: Any) -> FrameColumn:
    types, given = arrow.types, chunks.type
    text = types.is_string(given) or types.is_large_string(given) or str(given) == "string_view"
    if not text and not types.is_dictionary(given):
        raise UnreadableError(given)
    # A view's texts have no dictionary form of their own.
    encoded = chunks.cast(arrow.large_string()).dictionary_encode() if text else _plain_dictionary(chunks, arrow)
    ordered = not text and given.ordered
    return _dictionary_column(name, encoded.unify_dictionaries(), ordered=ordered, type_text=str(given))


def _plain_dictionary(chunks: Any, arrow: Any) -> Any:
    if str(chunks.type.value_type) != "string_view":
        return chunks
    wanted = arrow.dictionary(arrow.int64(), arrow.large_string(), ordered=chunks.type.ordered)
    parts = [
        arrow.DictionaryArray.from_arrays(
            part.indices.cast(arrow.int64()), part.dictionary.cast(arrow.large_string()), ordered=chunks.type.ordered
        )
        for part in chunks.chunks
    ]
    return arrow.chunked_array(parts, type=wanted)


def _dictionary_column(name: str, chunks: Any, *, ordered: bool, type_text: str) -> FrameColumn:
    codes = np.full(len(chunks), -1, dtype=np.int64)
    start = 0
    values: list[Any] = []
    for part in chunks.chunks:
        values = part.dictionary.to_pylist()
        codes[start : start + len(part)] = part.indices.fill_null(-1).cast("int64").to_numpy()
        start += len(part)
    if None in values:  # a dictionary may spell "missing" as an entry of its own
        places = np.cumsum([value is not None for value in values]) - 1
        table = np.append(np.where([value is None for value in values], -1, places), -1)
        codes, values = table[codes], [value for value in values if value is not None]
    if ordered:
        return FrameColumn(name, FeatureKind.ORDINAL, codes, labels=plain_labels(values, type_text))
    try:
        return column_of_codes(name, codes, [plain_cell(value) for value in values], nominal=True)
    except TypeError:
        raise UnreadableError(type_text) from None


def _made_by(library: str) -> Callable[[object], bool]:
    def fits(table: object) -> bool:
        # Asked of the type: a lazy table computes its column names.
        return type(table).__module__.partition(".")[0] == library and hasattr(type(table), "columns")

    return fits


FRAME_READERS: Final[tuple[tuple[Callable[[object], bool], Callable[[Any], list[tuple[str, Reader]]]], ...]] = (
    (_made_by("pandas"), _pandas_columns),
    (_made_by("polars"), _polars_columns),
    (lambda table: hasattr(table, "__arrow_c_stream__"), _arrow_columns),
)
"""How to know a table, and how to read its columns; pandas and polars are read without pyarrow."""
