"""Data frames: tables of pandas, polars and pyarrow, and anything with ``__arrow_c_stream__``."""

from collections.abc import Collection
from contextlib import suppress
from datetime import date
from decimal import Decimal
from importlib import import_module
from typing import Any

from espalier.data.column import RawColumn, column_from_objects, is_missing
from espalier.data.readers.arrow import arrow_column, category_column, columns_of_arrow, read_columns, unreadable
from espalier.errors import DataError, Fault


def is_frame(table: object) -> bool:
    """Return whether `columns_of_frame` can read `table`."""
    is_stream = hasattr(table, "__arrow_c_stream__") and type(table).__name__ != "Series"
    return _is_pandas(table) or _is_lazy(table) or is_stream


def columns_of_frame(table: Any, names: Collection[str] | None = None) -> list[RawColumn]:
    """Return the columns of a pandas, polars or pyarrow table, or of anything with ``__arrow_c_stream__``.

    If `names` is given, only the columns with these names are read.

    Texts are nominal, numbers numeric, true and false boolean, dates and timestamps datetime. A timestamp without a
    time zone is taken as UTC. Ordered categoricals are ordinal. Other categoricals are datetime if all categories are
    dates, boolean if all categories are booleans, else nominal, even if the categories are numbers.

    Raises:
        DataError: `table` is no such table, two columns have one name, or a type, such as time of day, is not read.
    """
    if not is_frame(table):
        message = "must be a pandas, polars or pyarrow table, or an object with __arrow_c_stream__"
        raise DataError([Fault("", "wrong_type", f"{message}, not a {type(table).__name__}")])
    if _is_pandas(table):
        return read_columns(
            (
                ("" if is_missing(name) else str(name), table.iloc[:, n])
                for n, name in enumerate(table.columns)
                if names is None or str(name) in names
            ),
            _pandas_column,
        )
    whole = _arrow_table(table.collect() if _is_lazy(table) else table)
    chosen = [place for place, name in enumerate(whole.column_names) if names is None or name in names]
    return columns_of_arrow(whole.select(chosen))


def _is_pandas(table: object) -> bool:
    return type(table).__module__.partition(".")[0] == "pandas" and hasattr(type(table), "columns")


def _is_lazy(table: object) -> bool:
    return type(table).__module__.partition(".")[0] == "polars" and hasattr(type(table), "collect")


def _pandas_column(name: str, series: Any) -> RawColumn:
    if hasattr(series, "cat"):
        return category_column(
            name, [(list(series.cat.categories), series.cat.codes.to_numpy())], ordered=series.cat.ordered
        )
    arrow = import_module("pyarrow")
    types = set(map(type, series[series.notna()].to_numpy())) if series.dtype == object else set()
    cells = None
    # Of objects, Arrow would convert some to the type of the first one, cut off nanoseconds, or append zeros.
    if len(types) <= 1 and not any(issubclass(each, date | Decimal) for each in types):
        with suppress(arrow.ArrowException, TypeError, ValueError, OverflowError):
            cells = arrow.array(series, from_pandas=True)
    if cells is None:
        return column_from_objects(name, series.to_numpy(dtype=object, na_value=None).tolist())
    return arrow_column(name, cells if isinstance(cells, arrow.ChunkedArray) else arrow.chunked_array([cells]))


def _arrow_table(table: Any) -> Any:
    arrow = import_module("pyarrow")
    try:
        return table if isinstance(table, arrow.Table) else arrow.RecordBatchReader.from_stream(table).read_all()
    except (arrow.ArrowException, AttributeError, TypeError) as error:
        message = f"the table's Arrow stream cannot be read ({type(error).__name__})"
        if hasattr(table, "schema") and hasattr(table, "select"):  # polars: name the columns that Arrow does not know
            faults = [unreadable(name, type_) for name, type_ in table.schema.items() if not _is_known(table, name)]
            raise DataError(faults or [Fault("", "wrong_type", message)]) from error
        raise DataError([Fault("", "wrong_type", message)]) from error


def _is_known(table: Any, name: str) -> bool:
    arrow = import_module("pyarrow")
    try:
        arrow.RecordBatchReader.from_stream(table.select(name))
    except (arrow.ArrowException, TypeError):
        return False
    return True
