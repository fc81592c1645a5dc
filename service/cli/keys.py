"""The command ``espalier keys create | list | revoke``: API keys on the database itself; no server is needed."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from service.cli import Command, Refused
from service.cli.server import failing_clearly, read_settings

if TYPE_CHECKING:
    from service.database.engine import Sessions
    from service.database.tables import Key

SCOPES = ("predict", "read", "train", "audit", "admin")  # a test compares them with the service's own
COLUMNS = "{:<36}  {:<20}  {:<26}  {:<20}  {}"
PAGE = 200
LONGEST_DAYS = 36500


def create(arguments: Namespace) -> int:
    """Make a key and print it: the only time that it is shown."""
    from service.database.clock import database_time  # noqa: PLC0415 - as above
    from service.database.engine import transaction  # noqa: PLC0415 - as above
    from service.database.tables import Scope  # noqa: PLC0415 - as above
    from service.repositories import keys  # noqa: PLC0415 - `espalier --help` needs no database

    scopes = [Scope(scope) for scope in arguments.scope]
    with _database() as source, transaction(source) as session:
        expires = None if arguments.days is None else database_time(session) + timedelta(days=arguments.days)
        _, token = keys.create(session, name=arguments.name, scopes=scopes, models=arguments.model, expires=expires)
    print(token)
    print("espalier: this is the only time that the key is shown", file=sys.stderr)
    return 0


def show(_: Namespace) -> int:
    """Print every key on a line, newest first; of their secrets nothing is shown."""
    from service.database.clock import database_time  # noqa: PLC0415 - as above
    from service.database.engine import read_session  # noqa: PLC0415 - as above
    from service.repositories import keys  # noqa: PLC0415 - as above

    print(COLUMNS.format("id", "name", "scopes", "models", "state"))
    with _database() as source, read_session(source) as session:
        cursor, more, now = None, True, database_time(session)
        while more:
            page = keys.list_keys(session, limit=PAGE, cursor=cursor)
            for key in page.items:
                print(_line(key, now=now))
            cursor, more = page.next, page.next is not None
    return 0


def revoke(arguments: Namespace) -> int:
    """End a key for good."""
    from service.database.engine import transaction  # noqa: PLC0415 - as above
    from service.repositories import keys  # noqa: PLC0415 - as above

    with _database() as source, transaction(source) as session:
        keys.revoke(session, arguments.id)
    print("espalier: the key is revoked; within a second it works nowhere", file=sys.stderr)
    return 0


def _arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="create | list | revoke")
    making = actions.add_parser("create", help="make a key and print it")
    making.add_argument("name", metavar="NAME", help="whose it is")
    making.add_argument("--scope", action="append", required=True, choices=SCOPES, help="may be given again")
    making.add_argument("--model", metavar="M", action="append", help="only this model; may be given again")
    making.add_argument("--days", metavar="N", type=_days, help="expires after so many days (default: never)")
    actions.add_parser("list", help="show all keys, without their secrets")
    ending = actions.add_parser("revoke", help="end a key for good")
    ending.add_argument("id", metavar="ID", help="its id, as `espalier keys list` shows it")


def _days(text: str) -> float:
    days = float(text)
    if not 0 < days <= LONGEST_DAYS:
        raise ArgumentTypeError(f"must be more than 0, at most {LONGEST_DAYS}")
    return days


ACTIONS = {"create": create, "list": show, "revoke": revoke}


def _run(arguments: Namespace) -> int:
    return ACTIONS[arguments.action](arguments)


COMMANDS: Mapping[str, Command] = {"keys": Command("make, list and revoke API keys", _arguments, _run)}


@contextmanager
def _database() -> "Iterator[Sessions]":
    """Give sessions on the database of the settings; what is refused becomes lines for a person."""
    from service.database.engine import connect, sessions  # noqa: PLC0415 - as above
    from service.database.migrate import is_current  # noqa: PLC0415 - as above
    from service.errors import NotFound, ValidationFailed  # noqa: PLC0415 - as above

    settings = read_settings()
    with failing_clearly():
        engine = connect(settings)
        try:
            if not is_current(engine):
                raise Refused("the tables are not of this version: run `espalier migrate` first")
            yield sessions(engine)
        except ValidationFailed as error:
            raise Refused("\n".join(fault.message for fault in error.faults)) from None
        except NotFound as error:
            raise Refused(str(error)) from None
        finally:
            engine.dispose()


def _line(key: "Key", *, now: datetime) -> str:
    models = "all models" if key.models is None else ",".join(key.models)
    return COLUMNS.format(key.id, key.name, ",".join(key.scopes), models, _state(key, now=now))


def _state(key: "Key", *, now: datetime) -> str:
    if key.revoked is not None:
        return f"revoked {key.revoked:%Y-%m-%d %H:%M} UTC"
    if key.expires is None:
        return "live"
    return f"{'expired' if key.expires <= now else 'live until'} {key.expires:%Y-%m-%d %H:%M} UTC"
