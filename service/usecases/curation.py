"""What is said of a model beside its versions: description, tags, inputs that are not logged, how long answers stay.

None of it changes a version.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import ModelName, Version
from service.errors import ValidationFailed
from service.repositories.models import LoadedVersion, lock_model
from service.usecases.model_cache import ModelCache

LONGEST_DESCRIPTION = 10_000  # characters
LONGEST_TAG = 64
MOST_TAGS = 50
VERSIONS_LOOKED_AT = 50  # for the attributes that a mask names, newest first
LINES = "\n\t"  # the only control characters that a description has


def change(session: Session, models: ModelCache, name: str, changes: Mapping[str, Any]) -> ModelName:
    """Change what is said of a model; what is not named stays.

    Args:
        session: Of a transaction for writing.
        models: Decoded versions, to see which attributes there are.
        name: The model.
        changes: `description`, `tags`, `mask`, `retention_days`, `operating_point`; None or [] takes it away.

    Raises:
        NotFound: There is no such model.
        ValidationFailed: Every fault, by its place.
    """
    row = lock_model(session, name)
    faults = list(_faults(session, models, row, changes))
    if faults:
        raise ValidationFailed(faults)
    for field, value in changes.items():
        setattr(row, field, value or None)
    session.flush()
    return row


def _faults(session: Session, models: ModelCache, row: ModelName, changes: Mapping[str, Any]) -> Iterator[Fault]:
    text = changes.get("description") or ""
    if len(text) > LONGEST_DESCRIPTION or not all(sign.isprintable() or sign in LINES for sign in text):
        legal = f"has at most {LONGEST_DESCRIPTION} characters, all printable or ends of lines"
        yield Fault("/description", "invalid", legal)
    tags = changes.get("tags") or ()
    if len(tags) > MOST_TAGS:
        yield Fault("/tags", "invalid", f"at most {MOST_TAGS} are kept")
    for place, tag in enumerate(tags[:MOST_TAGS]):
        if not 1 <= len(tag) <= LONGEST_TAG or not tag.isprintable():
            yield Fault(f"/tags/{place}", "invalid", f"a tag has 1 to {LONGEST_TAG} printable characters")
    yield from _twice("/tags", tags)
    yield from _faults_of_point(session, models, row, changes.get("operating_point"))
    mask = changes.get("mask") or ()
    yield from _twice("/mask", mask)
    unknown = _unknown(session, models, row, mask)
    for place, attribute in enumerate(mask):
        if attribute in unknown:
            legal = f"no version of the model has such an attribute (the newest {VERSIONS_LOOKED_AT} were looked at)"
            yield Fault(f"/mask/{place}", "unknown_value", legal)


def _twice(pointer: str, names: Sequence[str]) -> Iterator[Fault]:
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name in seen:
            yield Fault(f"{pointer}/{place}", "duplicate", "is there already")
        seen.add(name)


def _unknown(session: Session, models: ModelCache, row: ModelName, names: Collection[str]) -> set[str]:
    """Give the names that no version knows: a mask with a slip of the pen would hide nothing."""
    unknown = set(names)
    for version in _versions(session, models, row) if unknown else ():
        unknown -= version.attributes
        if not unknown:
            break
    return unknown


def _faults_of_point(session: Session, models: ModelCache, row: ModelName, point: object) -> Iterator[Fault]:
    """Say what is wrong with an operating point by the classes of a version that has such a label, else the newest."""
    if point is None:
        return
    found: list[Fault] = []
    for version in _versions(session, models, row):
        try:
            espalier.operating_point_from_dict(point, version.model.schema.classes)
        except espalier.ConfigError as error:
            found = found or [Fault(f"/operating_point{one.path}", one.code, one.message) for one in error.faults]
        else:
            return
    yield from found or [Fault("/operating_point", "not_legal", "the model has no version")]


def _versions(session: Session, models: ModelCache, row: ModelName) -> Iterator[LoadedVersion]:
    """Give the newest versions, decoded one by one."""
    query = select(Version.id).where(Version.model_id == row.id).order_by(Version.number.desc())
    for version_id in session.scalars(query.limit(VERSIONS_LOOKED_AT)).all():
        yield models.get(session, version_id)
