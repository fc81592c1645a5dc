"""Files that commands write."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from service.cli import Refused
from service.cli.files import write_whole


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"model")
    reader.join()
    assert (read, pipe.is_fifo()) == ([b"model"], True)


def test_a_folder_is_refused_and_stays(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be written"):
        write_whole(tmp_path, b"model")
    assert tmp_path.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    file = tmp_path / "answers.ndjson"
    file.touch(mode=0o600)
    write_whole(file, b"model")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"model", 0o600)


def test_after_ctrl_c_nothing_is_left_beside_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "model").write_bytes(b"old")
    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "model", b"new")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"model": b"old"}


def test_a_symbolic_link_stays_and_one_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("model")
    for content in (b"first", b"second"):
        write_whole(tmp_path / "link", content)
        assert ((tmp_path / "link").is_symlink(), (tmp_path / "model").read_bytes()) == (True, content)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Refused, match="cannot be written"):
        write_whole(tmp_path / "loop", b"model")


def run(*arguments: str, folder: Path, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    """Run a command as a process in a folder."""
    command = [sys.executable, "-m", "service.cli", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), **options.pop("environment", {})}
    return subprocess.run(command, cwd=folder, env=environment, check=False, **options)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "café.csv").write_text("wind,play\nfaible 😀,oui\nfort,non\n", encoding="utf-8")
    made = run("train", "café.csv", "--target", "play", "--preset", "id3", "--out", "m.json", folder=tmp_path)
    assert made.returncode == 0
    return tmp_path / "m.json"


def test_what_is_written_to_an_open_log_is_added_to_it(model: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    alone = run("show", "m.json", folder=tmp_path, stdout=subprocess.PIPE).stdout
    for mode, before in (("ab", b"before\n"), ("wb", b"")):
        log.write_bytes(b"before\n")
        with log.open(mode) as output:
            shown = run("show", "m.json", "--out", "/dev/stdout", folder=tmp_path, stdout=output)
        assert shown.returncode == 0
        assert log.read_bytes() == before + alone + b"written   /dev/stdout\n"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_what_programs_read_is_in_utf_8(model: Path, tmp_path: Path, encoding: str) -> None:
    for command in (["show", "m.json", "--format", "json"], ["export", "m.json", "--format", "sql-sqlite"]):
        environment = {"PYTHONIOENCODING": encoding}
        shown = run(*command, folder=tmp_path, stdout=subprocess.PIPE, environment=environment).stdout
        assert shown == run(*command, folder=tmp_path, stdout=subprocess.PIPE).stdout
        assert b"\\u" not in shown
        shown.decode("utf-8")


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "<&- 1>&- 2>&-"])
def test_a_closed_output_is_like_an_empty_device(model: Path, tmp_path: Path, closed: str) -> None:
    command = f'"{sys.executable}" -m service.cli train café.csv --target play --out other.json {closed}'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    for _ in range(2):  # the second one replaces the file
        assert subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, check=False).returncode == 0
        assert (tmp_path / "other.json").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        pytest.param(
            "train t.csv --target play --out t.schema.json", "would be lost", id="the schema beside the table"
        ),
        pytest.param(
            "train d --target play --out-of-core --out d/m.json", "reads or removes", id="in the table's folder"
        ),
        pytest.param(
            "train t.csv --target play --out-of-core --work w --out w/m.json",
            "reads or removes",
            id="in the work folder",
        ),
        pytest.param("export m.json --out m.py", "--out needs --format", id="an export without a format"),
        pytest.param("export m.json --format python --table t", "formats of SQL", id="a table for Python"),
        pytest.param("export m.json --format sql-sqlite --table a..b", "table: must be", id="a table without a name"),
        pytest.param("predict m.json t.csv --missing foo", "m.json: missing", id="no such strategy"),
        pytest.param("serve --socket 99", "--socket 99", id="a socket that is not open"),
    ],
)
def test_what_would_be_lost_or_ignored_is_refused(model: Path, tmp_path: Path, arguments: str, reason: str) -> None:
    (tmp_path / "t.csv").write_text("wind,play\nweak,yes\nstrong,no\n")
    (tmp_path / "t.schema.json").write_text('{"columns": [{"name": "wind", "kind": "nominal"}]}')
    (tmp_path / "w").mkdir()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "part.csv").write_text("wind,play\nweak,yes\nstrong,no\n")
    environment = {"ESPALIER_DATABASE_URL": f"sqlite:///{tmp_path}/a.db"}
    refused = run(*arguments.split(), folder=tmp_path, stderr=subprocess.PIPE, environment=environment)
    assert refused.returncode == 2
    assert reason in refused.stderr.decode()
    assert (tmp_path / "t.schema.json").read_text() == '{"columns": [{"name": "wind", "kind": "nominal"}]}'
