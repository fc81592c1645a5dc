"""A copy made by the lines of docs/operations/backup.md and put back answers as the original did."""

import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
import sqlalchemy

from service.settings import Settings
from tests.factories import ROOT
from tests.service.conftest import empty_database
from tests.service.served import serving

PAGE = (ROOT / "docs" / "operations" / "backup.md").read_text()
COPY = re.findall(r"^    (python3 -c .*backup.*|pg_(?:dump|restore) .*)$", PAGE, flags=re.MULTILINE)


def run(command: str, **variables: str) -> None:
    """Run a line of the page, with the names of this test in the place of the page's."""
    for name, value in variables.items():
        command = command.replace(name, value)
    subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True, cwd=ROOT)


def test_what_stood_before_the_copy_is_there_after_it_is_put_back(settings: Settings, tmp_path: Path) -> None:
    with serving(settings) as served:
        served.train("play")
        before = served.predict("play", {"rows": [{"Outlook": "Sunny"}]})["predictions"][0]["decision_id"]
        kept = copied(settings, tmp_path)
        later = served.predict("play", {"rows": [{"Outlook": "Rain"}]})["predictions"][0]["decision_id"]

    with empty_database("sqlite" if settings.database_file else "postgresql", tmp_path / "new") as url:
        put_back(kept, url)
        with serving(Settings(database_url=url)) as again:
            assert again.client.get("/readyz").status_code == 200
            explained = again.client.get(f"/v1/decisions/{before}/explanation").get_json()
            assert explained["verified"] is True
            assert again.client.get(f"/v1/decisions/{later}").status_code == 404
            assert again.predict("play", {"rows": [{"Outlook": "Sunny"}]})["version"] == 1


def copied(settings: Settings, folder: Path) -> Path:
    """Make a copy while the service has the database open."""
    assert len(COPY) == 3, COPY
    if settings.database_file is not None:
        run(COPY[0], **{"var/espalier.db": str(settings.database_file), "espalier-copy.db": f"{folder}/copy.db"})
        with sqlite3.connect(folder / "copy.db") as copy:
            assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        copy.close()
        return folder / "copy.db"
    if shutil.which("pg_dump") is None:
        pytest.skip("there is no pg_dump on this machine")
    run(COPY[1], **{"$DATABASE": server_url(settings.database_url), "espalier.dump": f"{folder}/copy.dump"})
    return folder / "copy.dump"


def put_back(kept: Path, url: str) -> None:
    """Put a copy in the place of an empty database."""
    file = Settings(database_url=url).database_file
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept, file)
    else:
        run(COPY[2], **{"$DATABASE": server_url(url), "espalier.dump": str(kept)})


def server_url(url: str) -> str:
    """Write a URL as the server's own tools read it."""
    return sqlalchemy.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
