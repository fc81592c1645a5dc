"""Models that answer, decoded: each once a process, as long as it is asked for now and then.

A decoded tree takes some 0.8 KB a node with all that is written down of it when it is first asked: what is kept is
bounded by nodes, too.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy.orm import Session

import espalier
from service.repositories.models import LoadedVersion, load_version

CACHED_MODELS: Final = 64
CACHED_NODES: Final = 1_500_000
"""Of all models together; a single one may have more."""


@dataclass(slots=True)
class ModelCache:
    """Decoded models by version id; the least recently used one makes room. For any number of threads.

    Attributes:
        capacity: How many models are kept at most.
        most_nodes: How many nodes, or conditions of rules, they have together at most; the last one is kept anyway.
    """

    capacity: int = CACHED_MODELS
    most_nodes: int = CACHED_NODES
    _loaded: OrderedDict[str, LoadedVersion] = field(default_factory=OrderedDict)
    _loading: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, session: Session, version_id: str) -> LoadedVersion:
        """The decoded version, from the cache or through the session; who asks meanwhile waits for the first one.

        Raises:
            NotFound: there is no such version.
        """
        found = self._found(version_id)
        if found is not None:
            return found
        with self._lock:
            loading = self._loading.setdefault(version_id, threading.Lock())
        with loading:  # not the other: decoding a large model must not stop those who ask for another
            found = self._found(version_id)
            if found is None:
                found = self._load(session, version_id)
        return found

    def _found(self, version_id: str) -> LoadedVersion | None:
        with self._lock:
            found = self._loaded.get(version_id)
            if found is not None:
                self._loaded.move_to_end(version_id)
            return found

    def _load(self, session: Session, version_id: str) -> LoadedVersion:
        try:
            loaded = load_version(session, version_id)
            with self._lock:
                self._loaded[version_id] = loaded
                self._make_room()
        finally:
            with self._lock:
                self._loading.pop(version_id, None)
        return loaded

    def _make_room(self) -> None:
        n_nodes = sum(map(_size, self._loaded.values()))
        while len(self._loaded) > self.capacity or (len(self._loaded) > 1 and n_nodes > self.most_nodes):
            n_nodes -= _size(self._loaded.popitem(last=False)[1])


def _size(version: LoadedVersion) -> int:
    body = version.model.body
    if isinstance(body, espalier.RuleList):
        return sum(len(rule.conditions) + 1 for rule in body.rules)
    return version.model.tree.n_nodes
