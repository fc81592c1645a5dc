"""Files that are joined to one table whose columns stay on disk."""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from espalier import DataError, Dataset, dataset_from_arrow, dataset_from_file, store_dataset


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(pyarrow.array([1.5, None, 3.5]), id="numbers"),
        pytest.param(pyarrow.array(["1", "2", None]), id="texts"),
        pytest.param(pyarrow.array([True, None, False]), id="booleans"),
        pytest.param(pyarrow.array([0, 1, 2], pyarrow.timestamp("s")), id="dates"),
        pytest.param(pyarrow.array(["a", None, "b"]).dictionary_encode(), id="a dictionary"),
    ],
)
@pytest.mark.parametrize("without", [0, 1])
def test_a_column_without_values_in_one_file_has_its_type_from_the_others(
    tmp_path: Path, cells: pyarrow.Array, without: int
) -> None:
    others = {"b": [1.0, 2.0, 3.0], "y": ["p", "q", "p"]}
    files = [{"a": pyarrow.nulls(3), **others}, {"a": cells, **others}]
    for place, columns in enumerate(files if without == 0 else files[::-1]):
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / f"{place}.parquet")
    stored = store_dataset([tmp_path / "0.parquet", tmp_path / "1.parquet"], tmp_path, target="y")

    known = cells.to_pylist()
    joined = {
        "a": [None] * 3 + known if without == 0 else known + [None] * 3,
        "b": others["b"] * 2,
        "y": others["y"] * 2,
    }
    assert stored == dataset_from_arrow(pyarrow.table(joined), target="y")


def test_files_with_and_without_types_are_refused_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,y\n1,p\n2,q\n")
    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "y": ["p", "q"]}), tmp_path / "b.parquet")

    with pytest.raises(DataError) as refused:
        store_dataset([tmp_path / "a.csv", tmp_path / "b.parquet"], tmp_path, target="y")

    assert [fault.path for fault in refused.value.faults] == ["/a", "/y"]
    assert "b.parquet: has a type in some files and none in the CSV files" in str(refused.value)


def test_rows_without_a_name_are_refused_as_when_read_into_memory(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text("{}\n{}\n")
    for read in (lambda: dataset_from_file(tmp_path / "a.ndjson"), lambda: store(tmp_path)):
        with pytest.raises(DataError) as refused:
            read()
        assert [fault.code for fault in refused.value.faults] == ["empty"]


def store(folder: Path) -> Dataset:
    (folder / "columns").mkdir()
    return store_dataset([str(folder / "a.ndjson")], folder / "columns")
