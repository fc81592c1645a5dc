"""The command ``espalier keys create | list | revoke``. It uses the database directly and needs no server."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from service.cli import Command, Refused
from service.cli.server import database_refusals, read_settings

if TYPE_CHECKING:
    from service.database.engine import Sessions
    from service.database.tables import Key

SCOPES = ("predict", "read", "train", "audit", "admin")  # a test compares them with the service's
COLUMNS = "{:<36}  {:<20}  {:<26}  {:<20}  {}"
MAX_DAYS = 36500


def create(arguments: Namespace) -> int:
    """Create a key and print it; it is not shown again."""
    from service.database.clock import database_time
    from service.database.engine import transaction
    from service.repositories import keys

    with _database() as source, transaction(source) as session:
        expires = None if arguments.days is None else database_time(session) + timedelta(days=arguments.days)
        limits = {"scopes": arguments.scope, "models": arguments.model, "expires": expires}
        _, token = keys.create(session, name=arguments.name, **limits)
    print(token)
    print("espalier: the key is not shown again", file=sys.stderr)
    return 0


def list_keys(_: Namespace) -> int:
    """Print a line for each key, without its secret; the newest key comes first."""
    from sqlalchemy import select

    from service.database.clock import database_time
    from service.database.engine import read_session
    from service.database.tables import Key

    with _database() as source, read_session(source) as session:
        now = database_time(session)
        print(COLUMNS.format("id", "name", "scopes", "models", "state"))
        for key in session.scalars(select(Key).order_by(Key.id.desc())):
            models = "all models" if key.models is None else ",".join(key.models)
            print(COLUMNS.format(key.id, key.name, ",".join(key.scopes), models, _state(key, now=now)))
    return 0


def revoke(arguments: Namespace) -> int:
    """Revoke a key for good."""
    from service.database.engine import transaction
    from service.repositories import keys

    if not arguments.id.isascii():  # an argument that is not UTF-8 cannot be looked up
        raise Refused(f"there is no key {arguments.id!r}")
    with _database() as source, transaction(source) as session:
        keys.revoke(session, arguments.id)
    print("espalier: the key is revoked; every process refuses it within a second", file=sys.stderr)
    return 0


def _arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="create | list | revoke")
    creating = actions.add_parser("create", help="create a key and print it")
    creating.add_argument("name", metavar="NAME", help="who uses it")
    creating.add_argument("--scope", action="append", required=True, choices=SCOPES, help="can be repeated")
    creating.add_argument("--model", metavar="M", action="append", help="limit it to this model; can be repeated")
    creating.add_argument("--days", metavar="N", type=_days, help="days until it expires (default: never)")
    actions.add_parser("list", help="list all keys, without their secrets")
    revoking = actions.add_parser("revoke", help="revoke a key for good")
    revoking.add_argument("id", metavar="ID", help="its id, as `espalier keys list` shows it")


def _days(text: str) -> float:
    with suppress(ValueError):
        if 0 < (days := float(text)) <= MAX_DAYS:
            return days
    raise ArgumentTypeError(f"{text!r} must be a number of days above 0, at most {MAX_DAYS}")


ACTIONS = {"create": create, "list": list_keys, "revoke": revoke}

COMMANDS: Mapping[str, Command] = {
    "keys": Command(
        "create, list and revoke API keys", _arguments, lambda arguments: ACTIONS[arguments.action](arguments)
    )
}


@contextmanager
def _database() -> "Iterator[Sessions]":
    from service.database.engine import connect, sessions
    from service.database.migrate import schema_mismatch

    settings = read_settings()
    if settings.database_file is not None and not settings.database_file.exists():
        raise Refused(f"there is no database {settings.database_file}: run `espalier migrate` first")
    with database_refusals():
        engine = connect(settings)
        try:
            if mismatch := schema_mismatch(engine):
                raise mismatch
            yield sessions(engine)
        finally:
            engine.dispose()


def _state(key: "Key", *, now: datetime) -> str:
    if key.revoked is not None:
        return f"revoked {key.revoked:%Y-%m-%d %H:%M} UTC"
    if key.expires is None:
        return "live"
    return f"{'expired' if key.expires <= now else 'live until'} {key.expires:%Y-%m-%d %H:%M} UTC"
