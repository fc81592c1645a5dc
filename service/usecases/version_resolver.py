"""Resolve a model name, with an optional version number or alias, to a decoded version and the settings of its model.

The document of a version never changes. Aliases, masks and operating points may change, and versions may be archived.
Each process caches this state for at most a second.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from cachetools import TLRUCache
from sqlalchemy import select
from sqlalchemy.orm import Session

import espalier
from service.database.engine import Sessions, read_session, translate_db_errors
from service.database.tables import ModelName, Version
from service.errors import Conflict, NotFound
from service.repositories import aliases, models
from service.repositories.model_cache import LoadedVersion, ModelCache

CACHE_SECONDS: Final = 1.0  # from the start of the look-up
MAX_CACHED: Final = 1024  # results of look-ups

OperatingPointDict = Mapping[str, Any]  # the JSON form of an operating point: {"label": …, "probability": …}


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The present settings of a version's model, and whether the version is archived."""

    mask: frozenset[str] = frozenset()  # attributes that are not logged; the version may lack some of these attributes
    archived: bool = False
    operating_point: OperatingPointDict | None = None  # None: the most probable label is answered

    def masked(self, attributes: Collection[str]) -> list[str] | None:
        """Return those of `attributes` that are not logged, sorted; None if all are logged."""
        return sorted(self.mask.intersection(attributes)) or None


@dataclass(frozen=True, slots=True)
class ResolvedVersion:
    """The version that answers, with the operating point of its model; `alias` is None if no alias selected it."""

    version: LoadedVersion
    alias: str | None
    settings: ModelSettings


class VersionResolver:
    """Resolves names to versions. Thread-safe.

    A new version is found at once. Any other change takes effect within a second, here at once after `invalidate`.
    """

    def __init__(self, source: Sessions, *, timer: Callable[[], float] = time.monotonic) -> None:
        self.models = ModelCache()
        self._source = source
        self._timer = timer
        self._lock = threading.Lock()
        self.invalidate()

    def resolve(self, name: str, number: int | None = None, alias: str | None = None) -> ResolvedVersion:
        """Return the version with this number or alias; raise `Conflict` if the version is archived.

        Without number and alias, return the version that `production` points at, else the newest that is not archived.
        """
        key = (name, number, alias)
        resolved: ResolvedVersion = self._cached(key, lambda: self._look_up(name, number, alias))
        if number is None and resolved.alias is None:
            # The id of the newest version is not cached, so a new version answers as soon as its job has succeeded.
            with translate_db_errors(), self._source.read_engine.connect() as connection:
                newest = connection.scalar(models.NEWEST, {"model": name})
            if newest != resolved.version.id:
                with self._lock:
                    self._cache.pop(key, None)
                resolved = self._cached(key, lambda: self._look_up(name, number, alias))
        return resolved

    def current_settings(self, resolved: ResolvedVersion) -> ModelSettings:
        """Return present settings with `resolved`'s operating point; raise `Conflict` if the version is archived."""

        def look_up() -> ModelSettings:
            with read_session(self._source) as session:
                return _answering_settings(session, resolved.version)

        settings: ModelSettings = self._cached(resolved.version.id, look_up)
        return replace(settings, operating_point=resolved.settings.operating_point)

    def invalidate(self) -> None:
        """Drop the cached results of look-ups; decoded models stay in memory."""
        with self._lock:  # the cache is replaced, not cleared: a look-up that is running writes to the old cache
            self._cache: TLRUCache[Any, Any] = TLRUCache(
                MAX_CACHED, lambda _, found, __: found[0] + CACHE_SECONDS, timer=self._timer
            )

    def _cached(self, key: object, look_up: Callable[[], Any]) -> Any:
        with self._lock:
            cache, found = self._cache, self._cache.get(key)
        if found is None:
            found = self._timer(), look_up()
            with self._lock:
                cache[key] = found
        return found[1]

    def _look_up(self, name: str, number: int | None, alias: str | None) -> ResolvedVersion:
        with read_session(self._source) as session:
            version_id, found_by = _version_id(session, name, number, alias)
            version = self.models.get(session, version_id)
            settings = _answering_settings(session, version)
        model = model_at_point(version.model, settings.operating_point)
        if model.operating_point is None:
            return ResolvedVersion(version, found_by, replace(settings, operating_point=None))
        return ResolvedVersion(replace(version, model=model), found_by, settings)


def settings_of(session: Session, version_id: str) -> ModelSettings:
    """Return the settings of the model of a version; raise `NotFound` if there is no such version."""
    query = select(ModelName.mask, ModelName.operating_point, Version.archived).join(
        Version, Version.model_id == ModelName.id
    )
    row = session.execute(query.where(Version.id == version_id)).first()
    if row is None:
        raise NotFound("version", version_id)
    return ModelSettings(frozenset(row.mask or ()), row.archived is not None, row.operating_point)


def model_at_point(model: espalier.Model, point: OperatingPointDict | None) -> espalier.Model:
    """Return the model with this operating point; return it unchanged if it lacks the label or `point` is None."""
    if point is None:
        return model
    try:
        operating_point = espalier.operating_point_from_dict(dict(point), model.schema.classes)
    except espalier.ConfigError:
        return model
    return espalier.with_operating_point(model, operating_point)


def _version_id(session: Session, name: str, number: int | None, alias: str | None) -> tuple[str, str | None]:
    if number is not None:
        return models.find_version(session, name, number).id, None
    wanted = alias or aliases.DEFAULT
    pointed_at = aliases.version_id(session, name, wanted)
    if pointed_at is not None:
        return pointed_at, wanted
    if alias is not None:
        models.find_model(session, name)
        raise NotFound("alias", f"{name}/{alias}")
    return models.newest_version_id(session, name), None


def _answering_settings(session: Session, version: LoadedVersion) -> ModelSettings:
    try:
        settings = settings_of(session, version.id)
    except NotFound:  # raised again with the name and number, since the caller does not know the id
        raise NotFound("version", f"{version.model_name}/{version.number}") from None
    if settings.archived:
        raise Conflict(f"version {version.number} of model {version.model_name!r} is archived: it no longer answers")
    return settings
