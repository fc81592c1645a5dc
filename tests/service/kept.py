"""Builders that put a data set or a trained version into the database of a test."""

from typing import Any

import espalier
from service.database.engine import Sessions, transaction
from service.database.tables import Version
from service.repositories import catalog, storage
from service.repositories.catalog import NewVersion
from service.usecases.staging import encoded_chunks

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
        row = catalog.add_data_set(session, name=name, dataset=dataset)
        storage.save(session, row.id, encoded_chunks(dataset, n_rows=chunk_rows))
        row.fingerprint = dataset.fingerprint
    return row.id


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
        return catalog.add_version(session, new_version(name, **fields))
