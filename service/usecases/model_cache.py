"""Decoded models of one process, the least recently used ones dropped first."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy.orm import Session

import espalier
from service.repositories.models import LoadedVersion, load_version

MAX_MODELS: Final = 64
MAX_NODES: Final = 1_500_000
"""Of all models together: a decoded tree takes some 0.8 KB a node, with the texts that are cached with it."""


@dataclass(slots=True)
class ModelCache:
    """Decoded models by version id, for any number of threads.

    Attributes:
        max_models: How many models are cached.
        max_nodes: How many nodes, or conditions of rules, they have together; the last model may have more.
    """

    max_models: int = MAX_MODELS
    max_nodes: int = MAX_NODES
    _loaded: OrderedDict[str, LoadedVersion] = field(default_factory=OrderedDict)
    _loading: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, session: Session, version_id: str) -> LoadedVersion:
        """Return a decoded version, from the cache or through the session; several callers decode it once.

        Raises:
            NotFound: There is no such version.
        """
        version = self._cached(version_id)
        if version is None:
            with self._lock:
                loading = self._loading.setdefault(version_id, threading.Lock())
            with loading:  # one lock a version: other models are answered while a large one is decoded
                version = self._cached(version_id) or self._load(session, version_id)
        return version

    def _cached(self, version_id: str) -> LoadedVersion | None:
        with self._lock:
            version = self._loaded.get(version_id)
            if version is not None:
                self._loaded.move_to_end(version_id)
            return version

    def _load(self, session: Session, version_id: str) -> LoadedVersion:
        try:
            version = load_version(session, version_id)
            with self._lock:
                self._loaded[version_id] = version
                n_nodes = sum(map(_n_nodes, self._loaded.values()))
                while len(self._loaded) > self.max_models or (len(self._loaded) > 1 and n_nodes > self.max_nodes):
                    n_nodes -= _n_nodes(self._loaded.popitem(last=False)[1])
        finally:
            with self._lock:
                self._loading.pop(version_id, None)
        return version


def _n_nodes(version: LoadedVersion) -> int:
    body = version.model.body
    if isinstance(body, espalier.RuleList):
        return sum(len(rule.conditions) + 1 for rule in body.rules)
    return version.model.tree.n_nodes
