"""Store a data set, or another declaration of the same rows. The caller opens and ends the transaction."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

import espalier
from service.database.tables import DataSet
from service.repositories import catalog, storage
from service.settings import Settings
from service.usecases.limits import CELL, check_size
from service.usecases.staging import StagedDataSet, TableInChunks


@dataclass(frozen=True, slots=True)
class NewDataSet:
    """A data set that was read, but is not stored yet."""

    name: str
    staged: StagedDataSet | TableInChunks

    @classmethod
    def of(cls, dataset: espalier.Dataset, *, name: str, settings: Settings) -> "NewDataSet":
        """Check the size, before a transaction begins.

        Raises:
            espalier.TooLarge: More rows or columns, or a longer text, than the settings allow.
            ValidationFailed: The name cannot be stored.
        """
        catalog.check_data_set_name(name)
        check_columns(dataset.schema, settings)
        check_size("rows", given=dataset.n_rows, limit=settings.max_rows)
        return cls(name, TableInChunks.of(dataset))


def upload_data_set(session: Session, new: NewDataSet) -> DataSet:
    """Store a data set: its declaration and its cells."""
    row = catalog.add_data_set(session, name=new.name, dataset=new.staged)
    storage.save(session, row.id, new.staged.chunks())
    row.fingerprint = new.staged.fingerprint
    return row


def redeclare_data_set(session: Session, data_set_id: str, new: NewDataSet, *, was: str) -> DataSet:
    """Store another declaration of the same rows, which had the fingerprint `was` when they were read.

    Raises:
        NotFound: There is no such data set.
        Conflict: It is used, or was changed meanwhile.
    """
    row = catalog.redeclare_data_set(session, data_set_id, dataset=new.staged, was=was)
    storage.replace(session, data_set_id, new.staged.chunks())
    row.fingerprint = new.staged.fingerprint
    return row


def check_columns(schema: espalier.Schema, settings: Settings) -> None:
    """Check the number of columns and the length of their categories.

    Raises:
        espalier.TooLarge: The settings allow fewer columns or shorter texts.
    """
    check_size("columns", given=len(schema.features), limit=settings.max_columns)
    texts = (text for feature in schema.features for text in feature.categories if isinstance(text, str))
    check_size(CELL, given=max(map(len, texts), default=0), limit=settings.max_cell_chars)
