"""The SQLite file is deleted or replaced while the service runs: no decision is answered that is in no file."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.running import environment_for, run_command, running

TENNIS = "Outlook,Wind,Play\nSunny,Weak,No\nRain,Weak,Yes\nRain,Strong,No\nOvercast,Weak,Yes\n"
ROWS = {"rows": [{"Outlook": "Rain", "Wind": "Weak"}]}


def delete(file: Path, _: Path) -> None:
    for name in file.parent.glob(f"{file.name}*"):
        name.unlink()


def replace(file: Path, backup: Path) -> None:
    shutil.copy(backup, file.with_suffix(".new")).replace(file)


def lay_over(file: Path, backup: Path) -> None:
    """As cp does: the same file with other content, and its write-ahead log, which belongs to the old one, away."""
    for ending in ("-wal", "-shm"):
        file.with_name(file.name + ending).unlink()
    shutil.copyfile(backup, file)


@pytest.mark.parametrize("act", [delete, replace, lay_over])
def test_nothing_is_answered_once_the_file_is_another_one(tmp_path: Path, act: Callable[[Path, Path], None]) -> None:
    with running(tmp_path) as service:
        service.train("tennis", service.upload(TENNIS, target="Play"))
        service.post("/v1/models/tennis/predict", ROWS, status=200)
        file, backup = tmp_path / "espalier.db", tmp_path / "backup"
        with sqlite3.connect(file) as source, sqlite3.connect(backup) as target:
            source.backup(target)
        source.close()
        target.close()
        service.post("/v1/models/tennis/predict", ROWS, status=200)

        act(file, backup)

        for _ in range(3):
            problem = service.post("/v1/models/tennis/predict", ROWS, status=503)
            assert "espalier.db" in problem["detail"]
            assert "deleted or replaced" in problem["detail"]
        ready = service.client.get("/readyz")
        assert (ready.status_code, "deleted or replaced" in ready.text) == (503, True)
        findings = json.loads(run_command(["doctor", "--json"], env=environment_for(tmp_path)).stdout)
        assert "processes still use the deleted one" in str(findings)


def test_after_a_stop_the_file_alone_has_everything(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        service.train("tennis", service.upload(TENNIS, target="Play"))
        service.post("/v1/models/tennis/predict", ROWS, status=200)

    alone = shutil.copy(tmp_path / "espalier.db", tmp_path / "alone.db")
    with sqlite3.connect(alone) as connection:
        query = "SELECT (SELECT count(*) FROM versions), (SELECT count(*) FROM decisions)"
        counts = connection.execute(query).fetchone()
    connection.close()
    assert counts == (1, 1)
