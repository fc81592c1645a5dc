"""Arrays of numpy that need care, and declarations that contradict themselves."""

import numpy as np
import pandas
import pytest

from espalier import DataError, FeatureKind, SchemaError, dataset_from_columns, dataset_from_file, train
from tests.core.data_sets import refused


def test_an_instant_counts_the_multiple_of_its_unit() -> None:
    data = dataset_from_columns({"t": np.array([0, 1, 2], "M8[25s]")})
    assert data.columns[0].tolist() == [0, 25, 50]


def test_a_masked_cell_is_missing() -> None:
    cells = np.ma.masked_array([1, 999, 3], mask=[False, True, False])
    assert dataset_from_columns({"a": cells}).rows() == [{"a": 1.0}, {"a": None}, {"a": 3.0}]


@pytest.mark.parametrize("unit", ["D", "25s", "s", "ms", "us", "ns"])
def test_a_masked_instant_is_missing(unit: str) -> None:
    instants = np.array(["1970-01-03", "1970-01-02", "2024-01-01"], f"M8[{unit}]")
    data = dataset_from_columns({"t": np.ma.masked_array(instants, mask=[False, True, False])})
    assert data.schema.features[0].kind == FeatureKind.DATETIME
    kept = dataset_from_columns({"t": instants}).columns[0].tolist()
    assert data.columns[0][[0, 2]].tolist() == [kept[0], kept[2]]
    assert np.isnan(data.columns[0][1])


def test_a_masked_instant_hides_what_is_below_the_mask_and_the_others_keep_their_notice() -> None:
    instants = np.array([1, 2_000, 3_000], "M8[ns]")
    (notice,) = dataset_from_columns({"t": np.ma.masked_array(instants, mask=[False, True, False])}).notices
    assert notice.code == "finer_than_microseconds"
    assert dataset_from_columns({"t": np.ma.masked_array(instants, mask=[True, False, False])}).notices == ()


@pytest.mark.parametrize("unit", ["s", "ns", "D"])
def test_spans_of_time_are_no_numbers(unit: str) -> None:
    with pytest.raises(DataError):
        dataset_from_columns({"a": np.array([1, 2], f"m8[{unit}]")})


@pytest.mark.parametrize("cells", [[2**60 + 1, 1.5, 7], [2**62 + 1, 5, 7], [2**70 + 1, 5, 2**60 + 1], [2**53, 0.5, 1]])
def test_large_whole_numbers_among_objects_are_categories_with_all_their_digits(cells: list[float]) -> None:
    schema = {"columns": [{"name": "a", "kind": "nominal"}]}
    data = dataset_from_columns({"a": np.array(cells, object)}, schema=schema)
    assert data == dataset_from_columns({"a": cells}, schema=schema)
    assert [str(row["a"]) for row in data.rows()] == [str(cell) for cell in cells]


@pytest.mark.parametrize("cells", [[2**60 + 1, 1.5, 7], [2**62 + 1, 5, 7], [2**70 + 1, 5, 2**60 + 1]])
def test_training_on_objects_warns_of_large_whole_numbers_that_are_rounded(cells: list[float]) -> None:
    frame = pandas.DataFrame({"a": pandas.Series(cells, dtype=object), "y": ["p", "q", "p"]})
    with pytest.warns(UserWarning, match=r"'a' has numbers of 2\^53 .* rounded"):
        train(frame, "cart", target="y")


def test_declared_categories_are_not_read_as_numbers() -> None:
    schema = {"columns": [{"name": "a", "categories": [1, 2, 3]}], "target": "y"}
    data = dataset_from_columns({"a": [1, 2, 1], "y": ["p", "q", "p"]}, schema=schema)
    feature = data.schema.features[0]
    assert (feature.kind, feature.categories) == (FeatureKind.NOMINAL, (1, 2, 3))
    numbers = {"columns": [{"name": "a", "kind": "numeric", "categories": [1, 2]}]}
    assert refused(SchemaError, lambda: dataset_from_columns({"a": [1, 2]}, schema=numbers)) == [
        ("/columns/0/categories", "not_legal")
    ]


def test_a_column_is_declared_once() -> None:
    schema = {"columns": [{"name": "a", "kind": "numeric"}, {"name": "a", "kind": "nominal"}]}
    assert refused(SchemaError, lambda: dataset_from_columns({"a": [1, 2]}, schema=schema)) == [
        ("/columns/1/name", "duplicate")
    ]


@pytest.mark.parametrize(
    "text", ["@attribute a numeric\n@data\n{0000000009999 5}\n", "@attribute '' numeric\n@data\n5\n"]
)
def test_a_cell_without_attribute_and_an_attribute_without_name_are_refused(tmp_path, text: str) -> None:
    (tmp_path / "a.arff").write_text(f"@relation r\n{text}")
    assert refused(DataError, lambda: dataset_from_file(tmp_path / "a.arff")) == [("", "not_arff")]
