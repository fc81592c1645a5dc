"""Versions and models that are put away: archived, they answer no more but explain; deleted, they are gone.

Nothing is deleted that a decision, an alias, a job or another version still refers to.
"""

from collections.abc import Iterator

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from service.database.clock import utc_now
from service.database.tables import AliasEvent, DecisionRecord, Job, ModelName, State, Version
from service.errors import Conflict
from service.repositories import aliases
from service.repositories.models import find_version, lock_model

UNFINISHED = (State.QUEUED, State.RUNNING)


def archive(session: Session, name: str, number: int) -> Version:
    """Have a version answer no more; what it has answered can still be explained. Asked again, nothing changes.

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
        Conflict: A decision, an alias, an unfinished job or another version refers to it; the message says which.
    """
    model = lock_model(session, name)
    version = find_version(session, name, number)
    for what in _references(session, model, version):
        raise Conflict(f"version {number} of model {name!r} cannot be deleted: {what}")
    session.execute(delete(Version).where(Version.id == version.id))


def delete_model(session: Session, name: str) -> None:
    """Delete a model with its versions and aliases.

    Raises:
        NotFound: There is no such model.
        Conflict: Decisions were made by it, or an unfinished job works for it.
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
    """Say what refers to a version."""
    if session.scalar(select(DecisionRecord.id).where(DecisionRecord.version_id == version.id).limit(1)) is not None:
        yield "there are decisions by it; archive it instead"
    mine = select(AliasEvent.alias).where(AliasEvent.model_id == model.id, AliasEvent.version_id == version.id)
    alias = session.scalar(mine.limit(1))
    if alias is not None:
        yield f"alias {alias!r} points at it, or did, which its history tells; archive it instead"
    child = session.scalars(select(Version).where(Version.parent_id == version.id).limit(1)).first()
    if child is not None:
        yield f"version {child.number} of model {child.model.name!r} was pruned from it; archive it instead"
    unfinished = select(Job).where(Job.model == model.name, Job.state.in_(UNFINISHED))
    for job in session.scalars(unfinished):
        if job.payload.get("version_id") == version.id:
            yield f"job {job.id} uses it and {job.deletion_blocker}"
