"""Decoded versions in memory. The document of a version never changes, so a decoded model is never outdated."""

import hashlib
import threading
from dataclasses import dataclass, field

from cachetools import LRUCache, cached
from sqlalchemy import select
from sqlalchemy.orm import Session

import espalier
from service.database.tables import ModelName, Version
from service.errors import NotFound
from service.serialization.table_records import LeafAnswers


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """A decoded version, with the id, hash and attribute names that a decision record needs, and answers to reuse."""

    id: str
    model_name: str
    number: int
    document_sha256: str
    model: espalier.Model
    attributes: frozenset[str]
    leaf_answers: LeafAnswers = field(default_factory=dict, init=False, repr=False, compare=False)


def load_version(session: Session, version_id: str) -> LoadedVersion:
    """Read and decode a version; raise `NotFound` if there is none with this id."""
    query = select(ModelName.name, Version.number, Version.document).join_from(Version, ModelName)
    row = session.execute(query.where(Version.id == version_id)).first()
    if row is None:
        raise NotFound("version", version_id)
    try:
        model = espalier.from_json(row.document)
    except espalier.DocumentError as error:  # not the caller's fault
        raise RuntimeError(f"the stored document of version {version_id} is damaged") from error
    return LoadedVersion(
        id=version_id,
        model_name=row.name,
        number=row.number,
        document_sha256=hashlib.sha256(row.document).hexdigest(),  # computed: the stored hash would hide a change
        model=model,
        attributes=frozenset(attribute.name for attribute in model.schema.attributes),
    )


class ModelCache:
    """Decoded versions by id. Thread-safe; concurrent callers decode a version once.

    A decoded tree takes about 0.8 KB per node, with its cached texts. The cached models together have at most
    `max_nodes` nodes (rules and conditions, for a list of rules); a small model counts as `max_nodes / max_models`.
    A larger model is cached alone. If the cache is full, the least recently used model is dropped.
    """

    def __init__(self, *, max_models: int = 64, max_nodes: int = 1_500_000) -> None:
        def size(version: LoadedVersion) -> int:
            return min(max_nodes, max(max_nodes // max_models, n_nodes_of(version.model)))

        cache: LRUCache[str, LoadedVersion] = LRUCache(max_nodes, getsizeof=size)
        self.get = cached(cache, key=lambda _, version_id: version_id, condition=threading.Condition())(load_version)


def n_nodes_of(model: espalier.Model) -> int:
    """Return the number of nodes of a tree, or of rules and conditions of a rule list."""
    body = model.body
    return body.n_rules + body.n_conditions if isinstance(body, espalier.RuleList) else body.n_nodes
