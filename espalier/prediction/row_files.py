"""Read rows to be predicted from a file of any format."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from espalier.data.readers import format_of, read_in_memory
from espalier.data.readers.csv import rows_of_csv
from espalier.data.readers.json import json_rows, ndjson_rows
from espalier.data.readers.source import Source, opened
from espalier.data.schema import Schema
from espalier.prediction.encode_rows import rows_from_text


def rows_from_csv(schema: Schema, source: str | bytes | Path) -> list[dict[str, Any]]:
    """Read CSV as rows to be answered: numbers where an attribute is numeric, categories by how they are written.

    Raises:
        DataError: Not CSV: not UTF-8, NUL, no names, a name twice, no rows, a line of another length, by its number.
    """
    if isinstance(source, Path):
        with opened(source) as file:
            return rows_from_text(schema, *rows_of_csv(file))
    content = io.BytesIO(source.encode(errors="surrogatepass") if isinstance(source, str) else source)
    return rows_from_text(schema, *rows_of_csv(Source(content, file=content)))


def rows_from_file(schema: Schema, path: Path, *, form: str | None = None) -> list[Mapping[str, Any]]:
    """Read rows to be answered from a file in any of `FORMATS`; see `rows_from_csv` for CSV.

    Its ending gives the format, if `form` does not.

    Raises:
        DataError: No such format, or the file is not in it.
    """
    form = format_of(path) if form is None else form
    if form == "csv":
        return list(rows_from_csv(schema, path))
    with opened(path) as source:
        if form == "json":
            return json_rows(source.file().read())
        if form == "ndjson":
            return ndjson_rows(source)
        return list(read_in_memory(source, form).rows())
