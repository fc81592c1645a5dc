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
