"""The files of a table that stays on disk: which are read, and which are refused."""

from pathlib import Path

import pytest

from espalier import DataError, train
from tests.core.data_sets import refused

LIMIT = 2**24


def test_a_folder_without_files_and_a_format_without_rows_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refused(DataError, lambda: train(empty, memory_limit=LIMIT)) == [("", "empty")]
    path = tmp_path / "table.json"
    path.write_text("[]")
    assert refused(DataError, lambda: train(path, memory_limit=LIMIT)) == [("", "unknown_format")]
    half = tmp_path / "half.parquet"  # comes first, and is not read
    half.write_bytes(b"PAR1")
    for name in ("table.json", "notes.txt"):
        (tmp_path / name).write_text("[]")
        again = lambda name=name: train([half, tmp_path / name], target="y", memory_limit=LIMIT)  # noqa: E731
        with pytest.raises(DataError, match=rf"^{name}: "):
            again()


def test_a_file_that_does_not_exist_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no_such_folder"):
        train(tmp_path / "no_such_folder", memory_limit=LIMIT, declared={"target": "y"})


def test_a_folder_in_the_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    (folder / "year=2026").mkdir(parents=True)
    (folder / "part.csv").write_text("x,y\n1,a\n2,b\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"'year=2026' .* is no regular file"):
        train(folder, memory_limit=LIMIT, declared={"target": "y"})
