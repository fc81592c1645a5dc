"""Resolve a model name, with a version number or an alias, to a decoded version."""

from sqlalchemy.orm import Session

from service.errors import NotFound
from service.repositories import aliases, catalog
from service.usecases.model_cache import ModelCache


def find_loaded(session: Session, models: ModelCache, name: str, number: int) -> catalog.LoadedVersion:
    """Find a version that is to answer, decoded.

    Raises:
        NotFound: There is no such model or version.
    """
    return models.get(session, catalog.find_version(session, name, number).id)


def find_pointed_at(
    session: Session, models: ModelCache, pointers: aliases.AliasCache, name: str, alias: str | None
) -> tuple[catalog.LoadedVersion, str | None]:
    """Find the version that an alias points at, decoded; without one `production` answers, else the newest version.

    Returns:
        The version, and the alias that led to it, if one did.

    Raises:
        NotFound: There is no such model or alias.
    """
    asked = alias or aliases.DEFAULT
    version_id = pointers.find(session, name, asked)
    if version_id is not None:
        return models.get(session, version_id), asked
    newest = catalog.newest_version_id(session, name)
    if alias is not None:
        raise NotFound("alias", f"{name}/{alias}")
    return models.get(session, newest), None
