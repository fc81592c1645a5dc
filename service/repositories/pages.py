"""Cursor paging: lists from the newest item to the oldest, by a cursor that stays right while items are added."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session
from sqlalchemy.orm.interfaces import ORMOption

from espalier import Fault
from service.database import DECISION_ID
from service.database.tables import Identified
from service.errors import ValidationFailed

PAGE_LIMIT = 200

Item_co = TypeVar("Item_co", covariant=True)
Row = TypeVar("Row", bound=Identified)


@dataclass(frozen=True, slots=True)
class Page(Generic[Item_co]):
    """Some items of a list, and the cursor at which the next ones begin (None: there are no more)."""

    items: tuple[Item_co, ...]
    next: str | None


def page(
    session: Session,
    table: type[Row],
    where: Iterable[ColumnElement[bool]] = (),
    *,
    options: Iterable[ORMOption] = (),
    limit: int = 50,
    cursor: str | None = None,
) -> Page[Row]:
    """Return a page of the rows that meet all conditions, newest first: ids of version 7 sort by creation.

    Raises:
        ValidationFailed: The limit is not 1 to 200, or the cursor is not one that a page gave.
    """
    check_page(limit=limit, cursor=cursor)
    query = select(table).where(*where, *([] if cursor is None else [table.id < cursor])).options(*options)
    found = session.scalars(query.order_by(table.id.desc()).limit(limit + 1)).all()
    items = tuple(found[:limit])
    return Page(items=items, next=items[-1].id if len(found) > limit else None)


def check_page(*, limit: int, cursor: str | None) -> None:
    """Raise `ValidationFailed` if the limit or the cursor is not legal, with a fault for each."""
    faults = []
    if not 1 <= limit <= PAGE_LIMIT:
        faults.append(Fault("/limit", "out_of_range", f"the limit is a whole number from 1 to {PAGE_LIMIT}"))
    if cursor is not None and not re.fullmatch(DECISION_ID, cursor):
        faults.append(Fault("/cursor", "invalid", "the cursor is the `next` of the page before, unchanged"))
    if faults:
        raise ValidationFailed(faults)
