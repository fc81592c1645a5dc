"""Builders that put a data set or a trained version into the database of a test."""

from typing import Any

import espalier
from service.database.engine import Sessions, transaction
from service.database.tables import Version
from service.repositories import datasets, models
from service.repositories.decisions import Columns
from service.repositories.model_cache import LoadedVersion
from service.repositories.models import NewVersion

# Drug depends on pressure alone, but for high pressure on the age as well.
PATIENTS = """age,pressure,drug
23,HIGH,A
31,HIGH,A
35,HIGH,A
61,HIGH,B
69,HIGH,B
74,HIGH,B
28,LOW,C
47,LOW,C
38,LOW,C
47,NORMAL,X
22,NORMAL,X
50,NORMAL,X
"""


def patients() -> espalier.Dataset:
    """Twelve rows."""
    return espalier.dataset_from_csv(PATIENTS, target="drug")


def keep_data_set(
    source: Sessions, dataset: espalier.Dataset | None = None, *, name: str = "patients", chunk_rows: int | None = None
) -> str:
    """Store a data set and return its id."""
    dataset = patients() if dataset is None else dataset
    with transaction(source) as session:
        new = datasets.new_data_set(dataset, rows_per_chunk=chunk_rows)
        return datasets.add_data_set(session, name=name, new=new).id


def new_version(name: str = "drugs", **fields: Any) -> NewVersion:
    """A version trained on the patients, not stored yet."""
    model = espalier.train(patients(), "cart")
    content: dict[str, Any] = {
        "document": espalier.to_json(model),
        "preset": "cart",
        "summary": espalier.summary(model),
        "seconds": 0.5,
    }
    return NewVersion(model=name, **(content | fields))


def keep_version(source: Sessions, name: str = "drugs", **fields: Any) -> Version:
    """Store a version trained on the patients."""
    with transaction(source) as session:
        return models.add_version(session, new_version(name, **fields))


def context_of(version: LoadedVersion, *, subject: str | None = None) -> Columns:
    """Return what a record says of rows that a version answers as it was trained."""
    return {
        "version_id": version.id,
        "document_sha256": version.document_sha256,
        "missing": version.model.config.missing,
        "subject": subject,
    }
