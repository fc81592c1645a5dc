"""`tools/oracle.py` compares two records."""

import json
from pathlib import Path

import pytest

from tools.oracle import compare_records


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ({"core.json": {"a": 1}}, {"core.json": {"a": 1}}, 0),
        ({"core.json": {"a": 1}}, {"core.json": {"a": 2}}, 1),
        ({"core.json": {}, "sqlite.json": {}}, {"core.json": {}}, 1),
        ({}, {"core.json": {}}, 1),
    ],
)
def test_records_differ_if_an_entry_differs_or_a_file_is_missing(
    tmp_path: Path, old: dict[str, object], new: dict[str, object], code: int
) -> None:
    for folder, record in (("old", old), ("new", new)):
        (tmp_path / folder).mkdir()
        for name, entries in record.items():
            (tmp_path / folder / name).write_text(json.dumps(entries))
    assert compare_records(tmp_path / "old", tmp_path / "new") == code
