"""Models that answer, decoded: each once a process, as long as it is asked for now and then."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy.orm import Session

from service.catalog import LoadedVersion, load_version

__all__ = ["CACHED_MODELS", "ModelCache"]

CACHED_MODELS: Final = 64


@dataclass(slots=True)
class ModelCache:
    """Decoded models by version id; the least recently used one makes room. For any number of threads."""

    capacity: int = CACHED_MODELS
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
                while len(self._loaded) > self.capacity:
                    self._loaded.popitem(last=False)
        finally:
            with self._lock:
                self._loading.pop(version_id, None)
        return loaded
