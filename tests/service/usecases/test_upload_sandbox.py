"""The process that reads one body: what it has said counts, however it ends."""

from pathlib import Path

import pytest

from service.settings import Settings
from tests.service.served import serving
from tests.written import as_parquet

WIND = {"wind": ["weak", "strong", None], "degrees": [20.5, 3, 7]}


def test_what_the_reader_said_counts_where_threads_would_abort_its_end(
    shared_sqlite: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of pyarrow that are still at work do so once in a hundred times."""
    is_sandbox = "'service.usecases.upload_sandbox' in sys.orig_argv"
    aborting = f"import atexit, os, sys\nif {is_sandbox}:\n    atexit.register(os.abort)\n"
    (tmp_path / "sitecustomize.py").write_text(aborting)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with serving(shared_sqlite) as served:
        answer = served.client.post(
            "/v1/datasets", data=as_parquet(WIND), content_type="application/vnd.apache.parquet"
        )
        assert answer.status_code == 201, answer.text


def test_no_cell_is_logged_if_the_reader_fails_unexpectedly(
    shared_sqlite: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failing = "import espalier, sys\n\n\ndef read_table(*_, **__):\n    raise KeyError('a cell')\n\n\n"
    failing += "espalier.read_table = read_table\n"
    (tmp_path / "sitecustomize.py").write_text(failing)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with serving(shared_sqlite) as served:
        served.client.application.testing = False
        answer = served.client.post(
            "/v1/datasets", data=as_parquet(WIND), content_type="application/vnd.apache.parquet"
        )
    assert answer.status_code == 500
    said = "".join(str(record.exc_info and record.exc_info[1]) for record in caplog.records)
    assert "reading a table failed: KeyError at" in said
    assert "sitecustomize.py:5" in said
    assert "a cell" not in said + answer.text + caplog.text
