"""Import, describe, archive and delete models and versions.

A version never changes. An archived one no longer answers, but its decisions can still be explained. Nothing is deleted
that a decision, an alias, a job or another version refers to.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.clock import utc_now
from service.database.tables import UNFINISHED, AliasEvent, DecisionRecord, Job, ModelName, Version
from service.errors import Conflict, ValidationFailed
from service.repositories import aliases
from service.repositories.models import LoadedVersion, NewVersion, find_version, lock_model
from service.settings import Settings
from service.usecases.datasets import check_columns
from service.usecases.limits import check_size
from service.usecases.model_cache import ModelCache

MAX_DESCRIPTION_CHARS = 10_000
MAX_TAG_CHARS = 64
MAX_TAGS = 50
MAX_VERSIONS_READ = 50  # newest first, to check the attributes of a mask and the label of an operating point
LINE_CHARS = "\n\t"  # the only control characters of a description


def read_document(content: bytes, *, name: str, settings: Settings) -> NewVersion:
    """Read an untrusted model document into a version to be stored.

    It is stored in its canonical form: a document that was exported here has the same SHA-256 again.

    Raises:
        espalier.DocumentError: It is not a model document; what is wrong, and where.
        espalier.TooLarge: It has more nodes or conditions, more columns or a longer text than the settings allow.
    """
    model = espalier.from_json(content)
    check_columns(model.schema, settings)
    summary = espalier.summary(model)
    check_size("nodes", given=summary.get("n_nodes") or 0, limit=settings.max_nodes)
    if isinstance(model.body, espalier.RuleList):
        n_conditions = sum(len(rule.conditions) + 1 for rule in model.body.rules)
        check_size("rules and conditions", given=n_conditions, limit=settings.max_nodes)
    return NewVersion(
        model=name, document=espalier.to_json(model), preset=model.config.preset, summary=summary, seconds=0.0
    )


def change_settings(session: Session, models: ModelCache, name: str, changes: Mapping[str, Any]) -> ModelName:
    """Change the settings of a model.

    Args:
        session: Of a transaction for writing.
        models: Decoded versions.
        name: The model.
        changes: `description`, `tags`, `mask`, `retention_days`, `operating_point`; None or [] removes a setting.

    Raises:
        NotFound: There is no such model.
        ValidationFailed: Every fault, by its place.
    """
    row = lock_model(session, name)
    faults = [
        *_description_faults(changes.get("description") or ""),
        *_tag_faults(changes.get("tags") or ()),
        *_point_faults(session, models, row, changes.get("operating_point")),
        *_mask_faults(session, models, row, changes.get("mask") or ()),
    ]
    if faults:
        raise ValidationFailed(faults)
    for field, value in changes.items():
        setattr(row, field, value or None)
    session.flush()
    return row


def archive_version(session: Session, name: str, number: int) -> Version:
    """Archive a version; an archived one stays as it is.

    Raises:
        NotFound: There is no such model or version.
        Conflict: An alias points at it.
    """
    model = lock_model(session, name)
    version = find_version(session, name, number)
    for alias in aliases.pointing_at(session, model.id, version.id):
        raise Conflict(f"alias {alias!r} points at version {number} of model {name!r}: point it at another one first")
    if version.archived is None:
        version.archived = utc_now()
        session.flush()
    return version


def delete_version(session: Session, name: str, number: int) -> None:
    """Delete a version that nothing refers to; its number is not given again.

    Raises:
        NotFound: There is no such model or version.
        Conflict: A decision, an alias, an unfinished job or another version refers to it; the message names which.
    """
    model = lock_model(session, name)
    version = find_version(session, name, number)
    for reference in _references(session, model, version):
        raise Conflict(f"version {number} of model {name!r} cannot be deleted: {reference}")
    session.execute(delete(Version).where(Version.id == version.id))


def delete_model(session: Session, name: str) -> None:
    """Delete a model with its versions and aliases.

    Raises:
        NotFound: There is no such model.
        Conflict: It has made decisions, or an unfinished job works for it.
    """
    model = lock_model(session, name)
    versions = select(Version.id).where(Version.model_id == model.id)
    if session.scalar(select(DecisionRecord.id).where(DecisionRecord.version_id.in_(versions)).limit(1)) is not None:
        raise Conflict(f"model {name!r} cannot be deleted: there are decisions by it; archive its versions instead")
    job = session.scalar(select(Job).where(Job.model == name, Job.state.in_(UNFINISHED)).limit(1))
    if job is not None:
        raise Conflict(f"model {name!r} cannot be deleted: job {job.id} for it {job.deletion_blocker}")
    session.execute(delete(AliasEvent).where(AliasEvent.model_id == model.id))
    session.execute(delete(Version).where(Version.model_id == model.id))
    session.execute(delete(ModelName).where(ModelName.id == model.id))


def _references(session: Session, model: ModelName, version: Version) -> Iterator[str]:
    """Yield what refers to a version, as a part of a sentence."""
    if session.scalar(select(DecisionRecord.id).where(DecisionRecord.version_id == version.id).limit(1)) is not None:
        yield "there are decisions by it; archive it instead"
    of_version = select(AliasEvent.alias).where(AliasEvent.model_id == model.id, AliasEvent.version_id == version.id)
    alias = session.scalar(of_version.limit(1))
    if alias is not None:
        yield f"alias {alias!r} points at it, or did, which its history tells; archive it instead"
    child = session.scalars(select(Version).where(Version.parent_id == version.id).limit(1)).first()
    if child is not None:
        yield f"version {child.number} of model {child.model.name!r} was pruned from it; archive it instead"
    is_used = Job.payload["version_id"].as_string() == version.id
    job = session.scalar(select(Job).where(Job.model == model.name, Job.state.in_(UNFINISHED), is_used).limit(1))
    if job is not None:
        yield f"job {job.id} uses it and {job.deletion_blocker}"


def _description_faults(text: str) -> Iterator[Fault]:
    if len(text) > MAX_DESCRIPTION_CHARS or not all(char.isprintable() or char in LINE_CHARS for char in text):
        legal = f"has at most {MAX_DESCRIPTION_CHARS} characters, all printable or ends of lines"
        yield Fault("/description", "invalid", legal)


def _tag_faults(tags: Sequence[str]) -> Iterator[Fault]:
    if len(tags) > MAX_TAGS:
        yield Fault("/tags", "invalid", f"at most {MAX_TAGS} are kept")
    for place, tag in enumerate(tags[:MAX_TAGS]):
        if not 1 <= len(tag) <= MAX_TAG_CHARS or not tag.isprintable():
            yield Fault(f"/tags/{place}", "invalid", f"a tag has 1 to {MAX_TAG_CHARS} printable characters")
    yield from _duplicate_faults("/tags", tags)


def _point_faults(session: Session, models: ModelCache, row: ModelName, point: object) -> Iterator[Fault]:
    """Yield the faults of an operating point by the classes of a version that has its label, else of the newest."""
    if point is None:
        return
    faults: list[Fault] = []
    for version in _newest_versions(session, models, row):
        try:
            espalier.operating_point_from_dict(point, version.model.schema.classes)
        except espalier.ConfigError as error:
            faults = faults or [Fault(f"/operating_point{one.path}", one.code, one.message) for one in error.faults]
        else:
            return
    yield from faults or [Fault("/operating_point", "not_legal", "the model has no version")]


def _mask_faults(session: Session, models: ModelCache, row: ModelName, mask: Sequence[str]) -> Iterator[Fault]:
    """Yield the faults of a mask: a misspelled attribute would hide nothing."""
    yield from _duplicate_faults("/mask", mask)
    unknown = _unknown_attributes(session, models, row, mask)
    for place, attribute in enumerate(mask):
        if attribute in unknown:
            legal = f"no version of the model has such an attribute (the newest {MAX_VERSIONS_READ} were looked at)"
            yield Fault(f"/mask/{place}", "unknown_value", legal)


def _duplicate_faults(pointer: str, names: Sequence[str]) -> Iterator[Fault]:
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name in seen:
            yield Fault(f"{pointer}/{place}", "duplicate", "is there already")
        seen.add(name)


def _unknown_attributes(session: Session, models: ModelCache, row: ModelName, names: Collection[str]) -> set[str]:
    unknown = set(names)
    for version in _newest_versions(session, models, row) if unknown else ():
        unknown -= version.attributes
        if not unknown:
            break
    return unknown


def _newest_versions(session: Session, models: ModelCache, row: ModelName) -> Iterator[LoadedVersion]:
    """Yield the newest versions, decoded one by one."""
    query = select(Version.id).where(Version.model_id == row.id).order_by(Version.number.desc())
    for version_id in session.scalars(query.limit(MAX_VERSIONS_READ)).all():
        yield models.get(session, version_id)
