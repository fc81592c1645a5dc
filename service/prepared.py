"""Statements that are made with nearly every request, without what a session or a pool costs around them.

Each runs by connections of its own, on which nothing is left begun: it sees what is committed at that moment.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import orjson
from sqlalchemy import Engine, Select, Table, event
from sqlalchemy.exc import DBAPIError

from service.database.engine import translated
from service.database.sqlite import begin_alone
from service.postgres import KeptStatement

__all__ = ["Inserted", "Prepared"]

Found = TypeVar("Found")


class _Connections:
    """Connections for any number of threads, made where all others are in use: at most one a thread.

    None is asked whether it still lives: where one turns out to be cut off, a new one is taken.
    """

    def __init__(self, engine: Engine, kept: KeptStatement) -> None:
        self._engine = engine
        self._kept = kept
        self._error: type[Exception] = engine.dialect.loaded_dbapi.Error
        self._idle: deque[Any] = deque()
        event.listen(engine, "engine_disposed", lambda _: self.close())

    def asked(self, ask: Callable[[Any], Found]) -> Found:
        """Give what `ask` gives for a connection; it is called again with another one if the first was cut off.

        Raises:
            As `service.database.engine.transaction`.
        """
        with translated():
            try:
                return self._asked(ask)
            except self._error as error:
                raise DBAPIError.instance(
                    "", (), error, self._error, hide_parameters=True, dialect=self._engine.dialect
                ) from error

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _asked(self, ask: Callable[[Any], Found]) -> Found:
        try:
            connection, is_new = self._idle.pop(), False
        except IndexError:  # all are in use
            connection, is_new = self._connected(), True
        try:
            found = ask(connection)
        except BaseException as error:
            was_cut_off = getattr(connection, "broken", False)  # psycopg's word; a file is never cut off
            connection.close()
            if is_new or not was_cut_off or not isinstance(error, self._error):
                raise
            self.close()  # so may the others be
            return self._asked(ask)
        self._idle.append(connection)
        return found

    def _connected(self) -> Any:
        pooled = self._engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()
        if (
            self._engine.dialect.name == "postgresql"
        ):  # of SQLite `service.database.engine` has told the driver so already
            connection.autocommit = True
            self._kept.keep(connection)
        return connection


class Prepared:
    """A statement with one parameter that gives one text; for any number of threads."""

    def __init__(self, engine: Engine, statement: Select[Any]) -> None:
        """Write `statement` down for the database of `engine`; nothing is asked yet."""
        is_postgresql = engine.dialect.name == "postgresql"
        numbering = {"paramstyle": "numeric_dollar"} if is_postgresql else {}
        compiled = statement.compile(dialect=type(engine.dialect)(**numbering))
        self._text = str(compiled)
        self._given = [compiled.params[name] for name in compiled.positiontup or ()]
        self._place = self._given.index(None)
        self._kept = KeptStatement(self._text)
        self._ask = self._of_postgresql if is_postgresql else self._of_sqlite
        self._connections = _Connections(engine, self._kept)

    def value(self, given: str) -> str | None:
        """Give the first value of the first row; None where there is no row.

        Raises:
            Unavailable: The database cannot be reached now.
            Rejected: `given` is nothing that this database takes.
        """
        parameters = [*self._given[: self._place], given, *self._given[self._place + 1 :]]
        return self._connections.asked(lambda connection: self._ask(connection, parameters))

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._connections.close()

    def _of_postgresql(self, connection: Any, parameters: Sequence[Any]) -> str | None:
        rows = self._kept.rows(connection, [str(value) for value in parameters])
        found = rows[0][0] if rows else None
        return None if found is None else found.decode()

    def _of_sqlite(self, connection: Any, parameters: Sequence[Any]) -> str | None:
        rows = connection.execute(self._text, parameters).fetchall()
        return rows[0][0] if rows else None


AT_ONCE: Final = "INSERT INTO {table} SELECT * FROM json_populate_recordset(NULL::{table}, $1) ON CONFLICT DO NOTHING"
"""All rows as one JSON text: one statement and commit, one way there and back. Cut off, it is made again."""
NUL: Final = b"\\u0000"
"""In a JSON text: kept in a column of type json, but not taken from within another text."""


class Inserted:
    """Rows that are added to a table together and committed; for any number of threads.

    The values are those that SQLAlchemy takes; moments and JSON only of the kinds that `orjson` knows.
    """

    def __init__(self, engine: Engine, table: Table) -> None:
        """Write the statements down; nothing is asked yet."""
        dialect = engine.dialect
        compiled = table.insert().compile(dialect=dialect)
        self._row_by_row = str(compiled)
        self._at_once = KeptStatement(AT_ONCE.format(table=table.name))
        types = {column.name: column.type.dialect_impl(dialect) for column in table.columns}
        self._bind = {name: kind.bind_processor(dialect) or _as_it_is for name, kind in types.items()}
        self._places = compiled.positiontup
        self._insert = self._into_postgresql if dialect.name == "postgresql" else self._into_sqlite
        self._connections = _Connections(engine, self._at_once)

    def insert(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows; when this comes back they are committed, all of them. Columns that a row does not name are null.

        Raises:
            As `service.database.engine.transaction`.
        """
        self._connections.asked(lambda connection: self._insert(connection, rows))

    def _into_postgresql(self, connection: Any, rows: Sequence[Mapping[str, Any]]) -> None:
        has_bytes = any(isinstance(value, bytes) for row in rows for value in row.values())  # of which JSON has none
        text = NUL if has_bytes else orjson.dumps(rows)
        if NUL not in text:
            self._at_once.rows(connection, [text.decode()])
            return
        with connection.transaction():
            connection.cursor().executemany(self._row_by_row, [self._bound(row) for row in rows])

    def _into_sqlite(self, connection: Any, rows: Sequence[Mapping[str, Any]]) -> None:
        bound = map(self._bound, rows)
        given = [[row[name] for name in self._places or ()] for row in bound]
        begin_alone(connection)
        try:
            connection.executemany(self._row_by_row, given)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _bound(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: bind(row.get(name)) for name, bind in self._bind.items()}


def _as_it_is(value: Any) -> Any:
    return value
