"""Look at the attributes of a data set and declare it anew, in memory that does not grow with the data set."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy.orm import Session

import espalier
from service.database.engine import Sessions, read_session
from service.errors import Conflict
from service.repositories.datasets import (
    NewDataSet,
    find_data_set,
    load_data_set,
    load_sample,
    new_data_set,
    stored_chunks,
)
from service.settings import Settings
from service.usecases.limits import CELL, check_size
from service.usecases.schema_changes import redeclared
from service.usecases.upload_sandbox import write_chunks
from service.usecases.uploads import in_sandbox

MAX_CELLS = 1_000_000  # of a stored data set that a web process takes into its memory


def profile_data_set(session: Session, data_set_id: str, *, log_base: str) -> dict[str, Any]:
    """Return the profile of a data set; ``sample`` is the number of rows that were read, None if all were.

    Raises:
        NotFound: There is no such data set.
        Conflict: It has no target.
    """
    row = find_data_set(session, data_set_id)
    if row.task is None:
        raise Conflict("the data set declares no target, of which its attributes could say something: declare one")
    table = load_sample(session, data_set_id, max_cells=MAX_CELLS)
    profile = espalier.profile(table, log_base=log_base).to_dict()
    return {**profile, "sample": None if table.n_rows == row.n_rows else table.n_rows}


@contextmanager
def redeclared_data_set(
    source: Sessions, data_set_id: str, changes: Mapping[str, Any], *, settings: Settings
) -> Iterator[tuple[NewDataSet, str]]:
    """Make the same rows under another schema, to be stored, and give the fingerprint of those they were made from.

    Args:
        source: Where the data set is.
        data_set_id: The data set.
        changes: As for `service.usecases.schema_changes.redeclared`.
        settings: The limits.

    Raises:
        NotFound: There is no such data set.
        espalier.SchemaError: The declaration is wrong.
        espalier.DataError: Cells do not fit it.
        espalier.TooLarge: The declaration has a longer text than the settings allow, or the data set is large and the
            memory of the upload sandbox is not enough.
        Unavailable: Uploads are being read for too long.
    """
    with tempfile.TemporaryFile() as file:
        with read_session(source) as session:
            row = find_data_set(session, data_set_id)
            is_small = row.n_rows * len(row.declared["columns"]) <= MAX_CELLS
            if is_small:
                table = load_data_set(session, data_set_id)
            else:
                index = write_chunks(stored_chunks(session, data_set_id), file)
                file.flush()
        if is_small:
            new = new_data_set(redeclared(table, changes))
            check_columns(new.schema, settings)
            yield new, row.fingerprint
            return
        stored = {"schema": row.declared, "n_rows": row.n_rows, "chunks": index}
        with in_sandbox({"redeclare": {**stored, "changes": changes}}, file, settings=settings) as new:
            check_columns(new.schema, settings)
            yield new, row.fingerprint


def check_columns(schema: espalier.Schema, settings: Settings) -> None:
    """Check the number of columns and the length of their categories.

    Raises:
        espalier.TooLarge: The settings allow fewer columns or shorter texts.
    """
    check_size("columns", given=len(schema.features), limit=settings.max_columns)
    texts = (text for feature in schema.features for text in feature.categories if isinstance(text, str))
    check_size(CELL, given=max(map(len, texts), default=0), limit=settings.max_cell_chars)
