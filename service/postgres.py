"""What PostgreSQL's server keeps: statements, parsed and planned, which is most of what a short one costs.

A connection pooler may change the server session below a connection at each statement, and a session then lacks what
another one keeps, or keeps it for somebody else. So a statement's name says its text: whatever session has one of that
name has that one, and a session that lacks it says so, having done nothing.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

__all__ = ["KeptStatement"]

LACKS_STATEMENT: Final = b"26000"
"""The server's code for a name that its session does not have."""


class KeptStatement:
    """A statement of which a session keeps the plan; it changes and says nothing that its text alone would not."""

    def __init__(self, text: str) -> None:
        """Name the statement `text`, whose parameters are ``$1``, ``$2``, …; nothing is asked yet."""
        self._text = text
        self._name = b"espalier_" + hashlib.sha256(text.encode()).hexdigest()[:32].encode()

    def keep(self, connection: Any) -> None:
        """Have the session of a driver's connection keep it; one that has it already refuses, and is as good."""
        connection.pgconn.prepare(self._name, self._text.encode())

    def rows(self, connection: Any, parameters: Sequence[str]) -> list[list[bytes | None]]:
        """Ask by a driver's connection in autocommit; give the rows, each value as the server writes it.

        Raises:
            psycopg.Error: What the server refuses, or a connection that was cut off.
        """
        from psycopg.pq import DiagnosticField, ExecStatus  # noqa: PLC0415 - the driver is there where it is needed

        given = [value.encode() for value in parameters]
        for _ in range(0 if any(b"\0" in value for value in given) else 2):  # it would end the value: no text has it
            result = connection.pgconn.exec_prepared(self._name, given)
            if result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
                return _values(result)
            if result.error_field(DiagnosticField.SQLSTATE) != LACKS_STATEMENT:
                break
            self.keep(connection)
        return self._rows_by_text(connection, parameters)

    def _rows_by_text(self, connection: Any, parameters: Sequence[str]) -> list[list[bytes | None]]:
        """Ask in the driver's own way: what is wrong is said by its exceptions, and no session has to keep anything."""
        from psycopg import RawCursor  # noqa: PLC0415 - as above

        cursor = RawCursor(connection)
        cursor.execute(self._text, parameters, prepare=False)
        return _values(cursor.pgresult)


def _values(result: Any) -> list[list[bytes | None]]:
    """Give what libpq brought, unread: by name and by text the same value is the same bytes."""
    columns = range(result.nfields)
    return [[result.get_value(row, column) for column in columns] for row in range(result.ntuples)]
