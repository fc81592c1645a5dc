"""Aliases: names such as `production` that point at a version of a model, and the history of where they pointed.

Nothing is overwritten: each change is an event, and the last event is in force. An event refers to the one that was in
force before it, so that two rollbacks go back two steps::

    1 set v1 ← 2 set v2 ← 3 set v3         a rollback of 3 puts event 2 in force again
                 ↑________________
                                  4 rollback to v2; before it is what was before 2: event 1
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, tuple_
from sqlalchemy.orm import Session

from service.database.clock import now
from service.database.tables import AliasEvent, ModelName, Version
from service.errors import Conflict, NotFound
from service.repositories.models import find_model, find_version, lock_model
from service.repositories.pages import Page, check_page

DEFAULT = "production"  # answers where neither a version nor an alias is named
ANY = object()  # whatever is in force may be replaced


def point(
    session: Session,
    name: str,
    alias: str,
    version: int,
    *,
    if_current: object = ANY,
    key_id: str | None = None,
) -> AliasEvent:
    """Point an alias at a version.

    Args:
        session: Of a transaction for writing.
        name: The model.
        alias: Its alias; made if it is not there.
        version: The number of the version.
        if_current: Only if the alias points at this version now; None: only if there is no such alias.
        key_id: Of the caller.

    Raises:
        NotFound: There is no such model or version.
        Conflict: Another version is in force than the caller thinks, or the version is archived.
    """
    model = lock_model(session, name)
    wanted = find_version(session, name, version)
    _check_answers(wanted)
    current = _current(session, model.id, alias)
    number = None if current is None else current.version.number
    if if_current is not ANY and if_current != number:
        state = "there is no such alias yet" if number is None else f"it points at version {number}"
        raise Conflict(f"alias {alias!r} of model {name!r} was left as it is: {state}")
    return _append(session, model, alias, wanted.id, event="set", last=current, before=current, key_id=key_id)


def roll_back(session: Session, name: str, alias: str, *, key_id: str | None = None) -> AliasEvent:
    """Point an alias again at what it pointed at before; a second rollback goes back one more step.

    Raises:
        NotFound: There is no such model or alias.
        Conflict: There is nothing before, or that version is archived.
    """
    model = lock_model(session, name)
    current = _current(session, model.id, alias)
    if current is None:
        raise NotFound("alias", f"{name}/{alias}")
    if current.before is None:
        raise Conflict(f"alias {alias!r} of model {name!r} has pointed at nothing else before")
    target = session.get_one(AliasEvent, (model.id, alias, current.before))
    _check_answers(target.version)
    earlier = None if target.before is None else session.get_one(AliasEvent, (model.id, alias, target.before))
    return _append(
        session, model, alias, target.version_id, event="rollback", last=current, before=earlier, key_id=key_id
    )


def history(
    session: Session,
    name: str,
    alias: str,
    *,
    at: datetime | None = None,
    limit: int = 50,
    cursor: int | None = None,
) -> Page[AliasEvent]:
    """Return every change of an alias, newest first; with `at` only the one in force at that moment, if any.

    Raises:
        NotFound: There is no such model or alias.
        ValidationFailed: The limit is not legal.
    """
    check_page(limit=limit, cursor=None)
    model = find_model(session, name)
    if _current(session, model.id, alias) is None:
        raise NotFound("alias", f"{name}/{alias}")
    query = _events(model.id, alias)
    if at is not None:
        return Page(items=tuple(session.scalars(query.where(AliasEvent.at <= at).limit(1))), next=None)
    if cursor is not None:
        query = query.where(AliasEvent.number < cursor)
    found: Sequence[AliasEvent] = session.scalars(query.limit(limit + 1)).all()
    return Page(items=tuple(found[:limit]), next=str(found[limit - 1].number) if len(found) > limit else None)


def list_current(session: Session, name: str, *, limit: int = 50, cursor: str | None = None) -> Page[AliasEvent]:
    """Return the event in force of each alias of a model, in the order of their names; `cursor` is a name.

    Raises:
        NotFound: There is no such model.
        ValidationFailed: The limit is not legal.
    """
    check_page(limit=limit, cursor=None)
    model = find_model(session, name)
    query = select(AliasEvent).where(AliasEvent.model_id == model.id, _is_last(model.id))
    if cursor is not None:
        query = query.where(AliasEvent.alias > cursor)
    found = session.scalars(query.order_by(AliasEvent.alias).limit(limit + 1)).all()
    return Page(items=tuple(found[:limit]), next=found[limit - 1].alias if len(found) > limit else None)


def version_id(session: Session, name: str, alias: str) -> str | None:
    """Return the id of the version that an alias points at; None if there is no such model or alias."""
    return session.scalar(
        select(AliasEvent.version_id)
        .join(ModelName, AliasEvent.model_id == ModelName.id)
        .where(ModelName.name == name, AliasEvent.alias == alias)
        .order_by(AliasEvent.number.desc())
        .limit(1)
    )


def pointing_at(session: Session, model_id: str, version_id: str) -> Sequence[str]:
    """Return the aliases of a model that point at one of its versions."""
    mine = AliasEvent.model_id == model_id, AliasEvent.version_id == version_id
    return session.scalars(select(AliasEvent.alias).where(*mine, _is_last(model_id))).all()


def _is_last(model_id: str) -> Any:
    """Return the condition that an event of a model is the last one of its alias."""
    last = (
        select(AliasEvent.alias, func.max(AliasEvent.number))
        .where(AliasEvent.model_id == model_id)
        .group_by(AliasEvent.alias)
    )
    return tuple_(AliasEvent.alias, AliasEvent.number).in_(last)


def _check_answers(version: Version) -> None:
    if version.archived is not None:
        raise Conflict(f"version {version.number} of model {version.model.name!r} is archived: it answers no more")


def _events(model_id: str, alias: str) -> Any:
    mine = (AliasEvent.model_id == model_id, AliasEvent.alias == alias)
    return select(AliasEvent).where(*mine).order_by(AliasEvent.number.desc())


def _current(session: Session, model_id: str, alias: str) -> AliasEvent | None:
    found: AliasEvent | None = session.scalars(_events(model_id, alias).limit(1)).first()
    return found


def _append(
    session: Session,
    model: ModelName,
    alias: str,
    version_id: str,
    *,
    event: str,
    last: AliasEvent | None,
    before: AliasEvent | None,
    key_id: str | None,
) -> AliasEvent:
    made = AliasEvent(
        model_id=model.id,
        alias=alias,
        number=1 if last is None else last.number + 1,
        version_id=version_id,
        event=event,
        before=None if before is None else before.number,
        at=now(),
        key_id=key_id,
    )
    session.add(made)
    session.flush()
    session.refresh(made)
    return made
