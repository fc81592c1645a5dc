"""Cursor paging; a cursor stays valid while items are added. `page` goes from the newest item to the oldest."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session
from sqlalchemy.orm.interfaces import ORMOption

from service.database.tables import Identified

PAGE_LIMIT = 200  # the largest `limit` that callers may ask for

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
Row = TypeVar("Row", bound=Identified)


@dataclass(frozen=True, slots=True)
class Page(Generic[Item_co]):
    """Some items of a list, and the cursor of the next page; `next` is None on the last page."""

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
    """Return a page of the rows that meet all conditions, by descending id; for UUIDv7, this means newest first."""
    query = select(table).where(*where, *([] if cursor is None else [table.id < cursor])).options(*options)
    return first_page(session, query.order_by(table.id.desc()), lambda row: row.id, limit=limit)


def first_page(session: Session, query: Select[Item], cursor_of: Callable[[Item], str], *, limit: int) -> Page[Item]:
    """Return a page of the first `limit` rows. One row more is queried: it shows that another page follows."""
    rows = session.scalars(query.limit(limit + 1)).all()
    return Page(items=tuple(rows[:limit]), next=cursor_of(rows[limit - 1]) if len(rows) > limit else None)
