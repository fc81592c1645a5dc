"""espalier doctor: what it finds, that it changes nothing, and its exit codes."""

import errno
import json
import os
import sqlite3
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from service.database.clock import utc_now
from service.database.engine import connect, sessions, transaction
from service.database.tables import Scope
from service.repositories import keys
from service.settings import Settings
from service.usecases import doctor
from service.usecases.doctor import Finding, Level, examine
from tests.acceptance.running import environment_for, run_command
from tests.factories import ROOT
from tests.service.conftest import Templates


def looked(monkeypatch: pytest.MonkeyPatch, settings: Settings, **changes: str) -> list[Finding]:
    """Look at an installation of these settings."""
    monkeypatch.setenv("ESPALIER_DATABASE_URL", settings.database_url)
    for name, value in changes.items():
        monkeypatch.setenv(f"ESPALIER_{name}", value)
    return examine()


def found(findings: list[Finding], check: str) -> list[tuple[str, str]]:
    return [(finding.level, finding.message) for finding in findings if finding.check == check]


def test_a_sound_installation_has_no_fault_and_names_its_database(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = looked(monkeypatch, settings)

    assert Level.FAULT not in {finding.level for finding in findings}
    assert {finding.check for finding in findings} == {"settings", "database", *doctor.CHECKS}
    [(level, message)] = found(findings, "database")
    assert (level, message.split()[0]) == ("ok", "sqlite" if settings.database_file else "postgresql")
    assert found(findings, "migrations")[0][0] == "ok"


def test_a_database_without_tables_is_a_fault_that_says_what_to_do(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(database_url=database_url)
    if settings.database_file is not None:
        sqlite3.connect(settings.database_file).close()
        settings.database_file.touch()

    [(level, message)] = found(looked(monkeypatch, settings, AUTH="keys"), "migrations")

    assert level == "fault"
    assert "espalier migrate" in message


def test_tables_of_a_later_version_are_a_fault_that_says_to_start_that_version(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _execute(settings, "UPDATE alembic_version SET version_num = 'v9999'")

    [(level, message)] = found(looked(monkeypatch, settings, AUTH="keys"), "migrations")

    assert level == "fault"
    assert "v9999" in message
    assert message.endswith("this program is older: start the version that migrated them")


def test_a_table_that_cannot_be_read_is_a_fault_of_its_check_and_the_others_are_made(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _execute(settings, "ALTER TABLE keys RENAME COLUMN scopes TO other")

    findings = looked(monkeypatch, settings, AUTH="keys")

    _assert_unreadable(found(findings, "keys"), "scopes")
    assert {finding.check for finding in findings if finding.level == "fault"} == {"keys"}
    assert {finding.check for finding in findings} == {"settings", "database", *doctor.CHECKS}


def test_a_revision_that_cannot_be_read_is_a_fault(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(database_url=database_url)
    _execute(settings, "CREATE TABLE alembic_version (other TEXT)")

    findings = looked(monkeypatch, settings, AUTH="keys")

    for check in ("migrations", "keys"):
        _assert_unreadable(found(findings, check), "version_num")
    assert found(findings, "clock")[0][0] == "ok"


def test_keys_that_are_missing_or_expire_soon_are_told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    [(level, message)] = found(looked(monkeypatch, settings, AUTH="keys"), "keys")
    assert (level, "espalier keys create" in message) == ("fault", True)

    engine = connect(settings)
    with transaction(sessions(engine)) as session:
        keys.create(session, name="old", scopes=[Scope.ADMIN], expires=utc_now() + timedelta(days=3))
        keys.create(session, name="shop", scopes=[Scope.READ], expires=utc_now() + timedelta(days=300))
    told = found(looked(monkeypatch, settings), "keys")
    assert [level for level, _ in told] == ["warning", "warning", "ok"]
    assert "every key with the scope admin expires" in told[0][1]
    assert "'old'" in told[1][1]
    assert told[2][1] == "2 live keys, 1 of them with the scope admin"

    with transaction(sessions(engine)) as session:
        keys.create(session, name="new", scopes=[Scope.ADMIN])
    engine.dispose()
    assert [level for level, _ in found(looked(monkeypatch, settings), "keys")] == ["warning", "ok"]


def test_settings_that_nobody_reads_or_that_contradict_each_other_are_told(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    everywhere, limits = "0.0.0.0", {"JOB_SECONDS": "9", "JOB_MEMORY_MB": "1048576"}  # noqa: S104 - refused
    findings = looked(monkeypatch, settings, PROT="80", HOST=everywhere, PROXIES="1", **limits)

    told = found(findings, "settings")
    assert [level for level, _ in told] == ["fault", "warning", "warning", "warning", "warning"]
    words = ("ESPALIER_HOST", "ESPALIER_PROXIES", "ESPALIER_JOB_SECONDS", "ESPALIER_JOB_MEMORY_MB", "is ESPALIER_PORT")
    assert all(word in message for word, (_, message) in zip(words, told, strict=True)), told


def test_a_disk_that_is_nearly_full_and_a_clock_that_is_off_are_told(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = timedelta(hours=1)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
    now = utc_now()
    monkeypatch.setattr(doctor, "utc_now", lambda: now + hour)

    findings = looked(monkeypatch, settings)

    assert {level for level, _ in found(findings, "disk")} == {"fault"}
    assert [level for level, _ in found(findings, "clock")] == ["warning"]


@pytest.mark.skipif(sys.platform != "linux", reason="there, root can give up reading every folder")
def test_a_folder_that_cannot_even_be_looked_into_is_a_fault(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    below = str(closed / "work")
    script = "import ctypes, os, sys; [ctypes.CDLL(None).prctl(24, right, 0, 0, 0) for right in (1, 2)]; "
    words = [sys.executable, "-c", script + "os.execv(sys.argv[1], sys.argv[1:])", sys.executable, "-m", "service.cli"]
    environment = environment_for(tmp_path) | {"ESPALIER_WORK": below}

    shown = subprocess.run([*words, "doctor"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert (shown.returncode, shown.stderr) == (1, "")
    assert f"fault    disk        {below}, for tables on disk, cannot be written by this user" in shown.stdout
    closed.chmod(0o700)


@pytest.mark.parametrize("place", ["program/below", "program", "link"])
def test_a_folder_that_cannot_be_made_is_a_fault(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    (tmp_path / "program").touch(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    findings = looked(monkeypatch, settings, WORK=str(tmp_path / place))

    assert found(findings, "disk")[-1] == (
        "fault", f"{tmp_path / place}, for tables on disk, cannot be written by this user ({os.geteuid()})"
    )  # fmt: skip


def test_no_room_for_temporary_files_is_a_fault(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "No usable temporary directory found in ['/tmp']"

    def full() -> str:
        raise FileNotFoundError(errno.ENOENT, reason)  # as Python's tempfile does

    monkeypatch.setattr("tempfile.gettempdir", full)

    assert ("fault", reason) in found(looked(monkeypatch, settings), "disk")


def test_the_command_makes_no_file_and_its_exit_code_tells(tmp_path: Path, templates: Templates) -> None:
    environment = environment_for(tmp_path)

    early = run_command(["doctor"], env=environment)
    assert (early.returncode, list(tmp_path.iterdir())) == (1, [])
    assert "fault    database" in early.stdout

    (tmp_path / "espalier.db").write_bytes(templates.file.read_bytes())
    sound = run_command(["doctor", "--json"], env=environment)
    shown = json.loads(sound.stdout)
    assert (sound.returncode, shown["sound"]) == (0, True), sound.stderr
    assert shown["findings"][0] == {
        "check": "settings",
        "level": "ok",
        "message": "legal and consistent",
    }
    assert [file.name for file in tmp_path.iterdir()] == ["espalier.db"]

    wrong = run_command(["doctor"], env=environment | {"ESPALIER_PORT": "x", "ESPALIER_DATABASE_URL": "mysql://a:pw@b"})
    assert (wrong.returncode, wrong.stdout.count("fault    settings"), "pw" in wrong.stdout) == (1, 2, False)


def test_a_folder_whose_name_is_not_utf_8_is_looked_into(tmp_path: Path, templates: Templates) -> None:
    database = tmp_path / "caf\udce9" / "var" / "espalier.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(templates.file.read_bytes())
    environment = {**environment_for(tmp_path), "ESPALIER_DATABASE_URL": "", "PYTHONPATH": str(ROOT)}

    words = [sys.executable, "-m", "service.cli", "doctor"]
    folder = database.parent.parent
    shown = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "ok       database" in shown.stdout


def _assert_unreadable(findings: list[tuple[str, str]], column: str) -> None:
    [(level, message)] = findings
    assert level == "fault"
    assert column in message
    assert "SELECT" not in message


def _execute(settings: Settings, statement: str) -> None:
    engine = connect(settings)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_a_database_that_does_not_answer_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Settings(database_url="postgresql+psycopg://me:hunter2@127.0.0.1:1/trees?password=hunter2")

    [(level, message)] = found(looked(monkeypatch, nobody), "database")

    assert level == "fault"
    assert "127.0.0.1:1/trees" in message
    assert "hunter2" not in message
