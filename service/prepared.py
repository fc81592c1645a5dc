"""A statement that is made with nearly every request, without what a session or a pool costs around it.

Each runs by connections of its own, on which nothing is ever begun: it sees what is committed at that moment.
"""

from collections import deque
from contextlib import suppress
from typing import Any

from sqlalchemy import Engine, Select, event
from sqlalchemy.exc import DBAPIError

from service.db import translated

__all__ = ["Prepared"]


class Prepared:
    """A statement with one parameter that gives one value; for any number of threads.

    A connection is made where all others are in use, so there are at most as many as threads. It is not asked whether
    it still lives: where it does not, the statement is made once more by a new one.
    """

    def __init__(self, engine: Engine, statement: Select[Any]) -> None:
        """Write `statement` down for the database of `engine`; nothing is asked yet."""
        compiled = statement.compile(dialect=engine.dialect)
        self._text = str(compiled)
        self._places = compiled.positiontup
        self._constants = compiled.params
        (self._parameter,) = (name for name, value in compiled.params.items() if value is None)
        self._engine = engine
        self._error: type[Exception] = engine.dialect.loaded_dbapi.Error
        self._idle: deque[Any] = deque()
        event.listen(engine, "engine_disposed", lambda _: self.close())

    def value(self, given: str) -> Any:
        """Give the first value of the first row; None where there is no row.

        Raises:
            Unavailable: The database cannot be reached now.
            Rejected: `given` is nothing that this database takes.
        """
        try:
            return self._asked(self._idle.pop(), given)
        except IndexError:  # all are in use
            pass
        except self._error:  # it was cut off, and so may the others be
            self.close()
        with translated():
            try:
                return self._asked(self._connected(), given)
            except self._error as error:
                raise DBAPIError.instance(
                    self._text, (), error, self._error, hide_parameters=True, dialect=self._engine.dialect
                ) from error

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _asked(self, connection: Any, given: str) -> Any:
        parameters = self._constants | {self._parameter: given}
        in_places = parameters if self._places is None else [parameters[name] for name in self._places]
        try:
            rows = connection.execute(self._text, in_places).fetchall()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return rows[0][0] if rows else None

    def _connected(self) -> Any:
        pooled = self._engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()
        if self._engine.dialect.name == "postgresql":  # of SQLite `service.db` has told the driver so already
            connection.autocommit = True
        return connection
