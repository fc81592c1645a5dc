"""The command keys as a person uses it, and the first key of a new database."""

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from service.cli.keys import SCOPES
from service.database.tables import Scope
from service.settings import TOKEN
from tests.acceptance.running import environment_for, free_port, run_command


def test_the_scopes_of_the_command_line_are_the_services() -> None:
    assert tuple(Scope) == SCOPES


def test_a_key_is_made_listed_and_revoked(tmp_path: Path) -> None:
    environment = environment_for(tmp_path)
    early = run_command(["keys", "list"], env=environment)
    assert (early.returncode, "espalier migrate" in early.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []
    assert run_command(["migrate"], env=environment).returncode == 0

    made = run_command(["keys", "create", "robot", "--scope", "read", "--model", "m", "--days", "9"], env=environment)
    token = TOKEN.fullmatch(made.stdout.strip())
    assert token is not None, made.stderr
    listed = run_command(["keys", "list"], env=environment).stdout
    revoked = run_command(["keys", "revoke", token["id"]], env=environment)
    after = run_command(["keys", "list"], env=environment).stdout

    assert token["secret"] not in listed
    assert all(word in listed for word in (token["id"], "robot", "read", "live until"))
    assert revoked.returncode == 0
    assert "revoked" in after
    for key_id in ("nothing", "\udcff"):  # the second one is a byte that is not UTF-8
        unknown = run_command(["keys", "revoke", key_id], env=environment)
        assert (unknown.returncode, unknown.stderr) == (2, f"espalier: there is no key {key_id!r}\n")


@pytest.mark.parametrize("command", [["keys", "list"], ["migrate"], ["up"]])
def test_tables_of_a_later_version_are_one_clear_line(tmp_path: Path, command: list[str]) -> None:
    environment = environment_for(tmp_path) | {"ESPALIER_AUTH": "keys", "ESPALIER_PORT": str(free_port())}
    assert run_command(["migrate"], env=environment).returncode == 0
    with closing(sqlite3.connect(tmp_path / "espalier.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v9999'")
        connection.commit()

    refused = run_command(command, env=environment)

    assert refused.returncode == 2
    assert refused.stderr.startswith("espalier: the tables are of revision v9999, this program needs v")
    assert refused.stderr.endswith("; this program is older: start the version that migrated them\n")


def test_a_key_that_cannot_be_made_is_refused_with_a_line_a_fault(tmp_path: Path) -> None:
    environment = environment_for(tmp_path)
    run_command(["migrate"], env=environment)
    refused = run_command(["keys", "create", "", "--scope", "admin", "--model", "m"], env=environment)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 2)


def test_the_first_key_is_printed_once_and_only_where_keys_are_on(tmp_path: Path) -> None:
    environment = environment_for(tmp_path) | {"ESPALIER_AUTH": "keys"}
    first, second = (run_command(["migrate"], env=environment) for _ in range(2))
    assert TOKEN.search(first.stdout)
    assert not TOKEN.search(second.stdout + second.stderr)
    assert "first admin key" in run_command(["keys", "list"], env=environment).stdout


def test_a_socket_that_strangers_can_reach_is_refused_without_keys(tmp_path: Path) -> None:
    with socket.socket() as given:
        given.bind(("0.0.0.0", 0))  # noqa: S104 - refused
        number = given.fileno()
        refused = run_command(["serve", "--socket", str(number)], env=environment_for(tmp_path), pass_fds=[number])
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "ESPALIER_AUTH=keys" in refused.stderr


def test_examples_with_keys_need_one_that_is_given(tmp_path: Path) -> None:
    refused = run_command(["up", "--examples"], env=environment_for(tmp_path) | {"ESPALIER_AUTH": "keys"})
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "ESPALIER_ADMIN_KEY" in refused.stderr
