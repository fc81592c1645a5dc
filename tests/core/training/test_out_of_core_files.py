"""The files of a table that stays on disk: which are read, and which are refused."""

from pathlib import Path

import pytest

from espalier import DataError, to_json, train
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


EMPTY = {"csv": "x,y\n", "ndjson": "", "arff": "@relation r\n@attribute x numeric\n@attribute y {a,b}\n@data\n"}
ROWS = {"csv": "x,y\n1,a\n2,b\n", "ndjson": '{"x":1,"y":"a"}\n{"x":2,"y":"b"}\n', "arff": EMPTY["arff"] + "1,a\n2,b\n"}


@pytest.mark.parametrize("form", EMPTY)
def test_a_file_without_rows_is_skipped_wherever_it_comes_unless_all_are_such(tmp_path: Path, form: str) -> None:
    empty, whole = tmp_path / f"empty.{form}", tmp_path / f"whole.{form}"
    empty.write_text(EMPTY[form], encoding="utf-8")
    whole.write_text(ROWS[form], encoding="utf-8")
    declared = {"target": "y"}
    expected = to_json(train(whole, memory_limit=LIMIT, declared=declared))
    none = tmp_path / f"none.{form}"
    none.touch()
    others = [] if form == "arff" else [none]  # an ARFF needs a header
    for files in ([empty, whole], [whole, empty], [empty, empty, whole], [*others, whole], [whole, *others]):
        assert to_json(train(files, memory_limit=LIMIT, declared=declared)) == expected
    for files in ([empty], [empty, empty]):
        with pytest.raises(DataError, match="no rows") as caught:
            train(files, memory_limit=LIMIT, declared=declared)
        assert [fault.code for fault in caught.value.faults] == ["empty"]


def test_the_columns_of_a_parquet_file_without_rows_do_not_matter_wherever_it_comes(tmp_path: Path) -> None:
    import pyarrow  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    empty, whole = tmp_path / "empty.parquet", tmp_path / "whole.parquet"
    parquet.write_table(pyarrow.table({"other": pyarrow.array([], pyarrow.string())}), empty)
    parquet.write_table(pyarrow.table({"x": [1, 2], "y": ["a", "b"]}), whole)
    expected = to_json(train(whole, memory_limit=LIMIT, declared={"target": "y"}))
    for files in ([empty, whole], [whole, empty]):
        assert to_json(train(files, memory_limit=LIMIT, declared={"target": "y"})) == expected
    with pytest.raises(DataError, match="no rows"):
        train([empty, empty], memory_limit=LIMIT, declared={"target": "other"})
