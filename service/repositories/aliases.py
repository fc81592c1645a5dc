"""Aliases: names such as `production` that point at a version of a model, with their history.

Each change appends an event, and the last event is in force; to point an alias where it points already is no change.
Each event has the number of the event that a rollback restores (``before``), so two rollbacks go back two steps::

    1 set v1 ← 2 set v2 ← 3 set v3         a rollback of 3 appends 4, with the version of 2
       ↑_____________________________
                                     4 rollback to v2; its ``before`` is 1, like that of 2
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select, tuple_
from sqlalchemy.orm import Session

from service.database.clock import now
from service.database.tables import AliasEvent, ModelName, Version
from service.errors import Conflict, NotFound
from service.repositories.models import find_model, find_version
from service.repositories.pagination import Page, first_page

DEFAULT = "production"  # used if neither a version nor an alias is named
ANY = object()  # for `if_current`: any version, or none; `if_current=None` means that the alias must not exist yet


def point(
    session: Session, name: str, alias: str, version: int, *, if_current: object = ANY, key_id: str | None = None
) -> AliasEvent:
    """Point an alias at a version; raise `Conflict` if the version is archived or the alias is not at `if_current`."""
    model = find_model(session, name, lock=True)
    target = find_version(session, name, version)
    current = _current(session, model.id, alias)
    _check_current(current, if_current, name=name, alias=alias)
    if current is not None and current.version.number == version:
        return current
    return _append(session, current, target, alias=alias, key_id=key_id, event="set", before=current and current.number)


def roll_back(
    session: Session, name: str, alias: str, *, if_current: object = ANY, key_id: str | None = None
) -> AliasEvent:
    """Point an alias at its previous version; raise `Conflict` as `point` does, and if there is none."""
    model = find_model(session, name, lock=True)
    current = _current(session, model.id, alias)
    if current is None:
        raise NotFound("alias", f"{name}/{alias}")
    _check_current(current, if_current, name=name, alias=alias)
    if current.before is None:
        raise Conflict(f"alias {alias!r} of model {name!r} has no previous version")
    goal = session.get_one(AliasEvent, (model.id, alias, current.before))
    return _append(session, current, goal.version, alias=alias, key_id=key_id, event="rollback", before=goal.before)


def history(
    session: Session, name: str, alias: str, *, at: datetime | None = None, limit: int = 50, cursor: int | None = None
) -> Page[AliasEvent]:
    """Return the changes of an alias, newest first; with `at`, only the change in force at that moment, if any."""
    model = find_model(session, name)
    if _current(session, model.id, alias) is None:
        raise NotFound("alias", f"{name}/{alias}")
    query = _events(model.id, alias)
    if at is not None:
        return Page(items=tuple(session.scalars(query.where(AliasEvent.at <= at).limit(1))), next=None)
    if cursor is not None:
        query = query.where(AliasEvent.number < cursor)
    return first_page(session, query, lambda event: str(event.number), limit=limit)


def list_current(session: Session, name: str, *, limit: int = 50, cursor: str | None = None) -> Page[AliasEvent]:
    """Return the last event of each alias of a model, sorted by alias; the page begins after the alias `cursor`."""
    model = find_model(session, name)
    query = select(AliasEvent).where(AliasEvent.model_id == model.id, _is_last(model.id))
    if cursor is not None:
        query = query.where(AliasEvent.alias > cursor)
    return first_page(session, query.order_by(AliasEvent.alias), lambda event: event.alias, limit=limit)


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
    """Return the aliases of a model that point at the version `version_id`."""
    mine = AliasEvent.model_id == model_id, AliasEvent.version_id == version_id
    return session.scalars(select(AliasEvent.alias).where(*mine, _is_last(model_id))).all()


def _is_last(model_id: str) -> Any:
    numbers = select(AliasEvent.alias, func.max(AliasEvent.number)).where(AliasEvent.model_id == model_id)
    return tuple_(AliasEvent.alias, AliasEvent.number).in_(numbers.group_by(AliasEvent.alias))


def _events(model_id: str, alias: str) -> Select[AliasEvent]:
    return select(AliasEvent).filter_by(model_id=model_id, alias=alias).order_by(AliasEvent.number.desc())


def _current(session: Session, model_id: str, alias: str) -> AliasEvent | None:
    return session.scalar(_events(model_id, alias).limit(1))


def _check_current(current: AliasEvent | None, if_current: object, *, name: str, alias: str) -> None:
    number = None if current is None else current.version.number
    if if_current is not ANY and if_current != number:
        state = "there is no such alias yet" if number is None else f"it points at version {number}"
        raise Conflict(f"alias {alias!r} of model {name!r} was not changed: {state}")


def _append(session: Session, last: AliasEvent | None, version: Version, **columns: Any) -> AliasEvent:
    if version.archived is not None:
        raise Conflict(f"version {version.number} of model {version.model.name!r} is archived: it no longer answers")
    here = {"model_id": version.model_id, "version_id": version.id}
    row = AliasEvent(number=1 if last is None else last.number + 1, at=now(), **here, **columns)
    session.add(row)
    session.flush()
    session.refresh(row)
    return row
