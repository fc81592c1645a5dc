"""Profile and redeclare stored data sets, in memory that does not grow with the data set."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy.orm import Session

import espalier
from service.database.engine import Sessions, read_session
from service.errors import CELL, Conflict, check_size
from service.repositories.datasets import (
    NewDataSet,
    find_data_set,
    load_data_set,
    load_sample,
    new_data_set,
    stored_chunks,
)
from service.settings import Settings
from service.usecases.schema_changes import redeclared
from service.usecases.upload_sandbox import write_chunks
from service.usecases.uploads import in_sandbox

MAX_CELLS = 1_000_000  # of a stored data set that a web process takes into its memory


def profile_data_set(session: Session, data_set_id: str, *, log_base: str) -> dict[str, Any]:
    """Return the profile of a data set; ``sample`` is the number of rows that were read, None if all were."""
    row = find_data_set(session, data_set_id)
    if row.task is None:
        raise Conflict("the data set declares no target, which a profile needs: declare one")
    table = load_sample(session, data_set_id, max_cells=MAX_CELLS)
    profile = espalier.profile(table, log_base=log_base).to_dict()
    return {**profile, "sample": None if table.n_rows == row.n_rows else table.n_rows}


@contextmanager
def redeclared_data_set(
    source: Sessions, data_set_id: str, changes: Mapping[str, Any], *, settings: Settings
) -> Iterator[tuple[NewDataSet, str]]:
    """Yield the same rows under another schema, as `redeclared`, and the fingerprint of the stored data set."""
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
            new = new_data_set(redeclared(table, changes, map(espalier.Notice.from_dict, row.notices)))
            check_columns(new.schema, settings)
            yield new, row.fingerprint
            return
        stored = {"schema": row.declared, "n_rows": row.n_rows, "notices": row.notices, "chunks": index}
        with in_sandbox({"redeclare": {**stored, "changes": changes}}, file, settings=settings) as new:
            check_columns(new.schema, settings)
            yield new, row.fingerprint


def check_columns(schema: espalier.Schema, settings: Settings) -> None:
    """Raise `TooLarge` if the settings allow fewer columns or shorter categories."""
    check_size("columns", given=len(schema.features), limit=settings.max_columns)
    texts = (text for feature in schema.features for text in feature.categories if isinstance(text, str))
    check_size(CELL, given=max(map(len, texts), default=0), limit=settings.max_cell_chars)
