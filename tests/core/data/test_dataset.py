"""Data sets: columns by code and number, their fingerprint, rows and parts."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import (
    DataError,
    Dataset,
    Feature,
    FeatureKind,
    Schema,
    dataset_from_columns,
    dataset_from_csv,
    dataset_from_rows,
)
from tests.core.planted import MIXED

CSV = "length,colour,size,sold,kind\n1.5,red,small,true,a\n,blue,?,false,b\n-2,NA,large,,c\n"
ROWS = [
    {"length": 1.5, "colour": "red", "size": "small", "sold": True, "kind": "a"},
    {"length": None, "colour": "blue", "size": None, "sold": False, "kind": "b"},
    {"length": -2.0, "colour": None, "size": "large", "sold": None, "kind": "c"},
]


def mixed():
    return dataset_from_rows(ROWS, schema=MIXED)


def test_one_table_has_one_fingerprint_whatever_it_was_read_from():
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    prints = {
        mixed().fingerprint,
        dataset_from_csv(CSV, schema=MIXED).fingerprint,
        dataset_from_csv(CSV.encode(), schema=MIXED.to_dict()).fingerprint,
        dataset_from_columns(columns, schema=MIXED).fingerprint,
        Dataset(Schema.from_dict(MIXED.to_dict()), mixed().columns).fingerprint,
    }
    assert len(prints) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[0].update(length=1.5000000000000002),
        lambda rows: rows[0].update(length=None),
        lambda rows: rows[0].update(colour="blue"),
        lambda rows: rows[1].update(sold=None),
        lambda rows: rows.reverse(),
        lambda rows: rows.append(rows[0]),
    ],
)
def test_another_cell_order_or_number_of_rows_has_another_fingerprint(change):
    rows = [dict(row) for row in ROWS]
    change(rows)
    assert dataset_from_rows(rows, schema=MIXED).fingerprint != mixed().fingerprint
    assert dataset_from_rows(rows, schema=MIXED) != mixed()


def test_the_two_zeros_are_one_number():
    assert dataset_from_rows([{"x": 0.0}]).fingerprint == dataset_from_rows([{"x": -0.0}]).fingerprint


def test_equal_data_sets_are_equal_and_have_one_hash():
    assert mixed() == dataset_from_csv(CSV, schema=MIXED)
    assert hash(mixed()) == hash(dataset_from_csv(CSV, schema=MIXED))
    assert mixed() != "mixed"


def test_rows_have_their_labels_numbers_and_none():
    assert mixed().rows() == ROWS
    assert mixed().rows(1, 2) == ROWS[1:2]
    assert mixed().rows(2) == ROWS[2:]
    assert mixed().rows(5) == []


def test_columns_are_codes_and_numbers_that_cannot_be_written():
    data = mixed()
    assert [column.dtype for column in data.columns] == [np.float64, np.int32, np.int32, np.int32, np.int32]
    assert data.columns[1].tolist() == [0, 2, -1]
    assert math.isnan(data.columns[0][1])
    with pytest.raises(ValueError, match="read-only"):
        data.columns[0][0] = 3
    assert data.target.tolist() == [0, 1, 2]
    assert [len(column) for column in data.attributes] == [3] * 4
    assert data.weight.tolist() == [1.0, 1.0, 1.0]


def test_the_arrays_that_were_given_stay_the_callers():
    given_column = np.array([1.0, 2.0])
    data = Dataset(Schema(MIXED.features[:1]), (given_column,))
    given_column[0] = 1.0
    assert given_column.flags.writeable
    assert not data.columns[0].flags.writeable


def test_numbers_given_in_single_precision_stay_so_and_are_the_same_numbers():
    generator = np.random.default_rng(7)
    numbers = generator.normal(size=300).astype(np.float32)
    numbers[::17] = np.nan
    single = Dataset(MIXED, (numbers, *(generator.integers(-1, 2, 300) for _ in range(4))))
    double = Dataset(MIXED, (numbers.astype(np.float64), *single.columns[1:]))
    assert [each.columns[0].dtype for each in (single, double)] == [np.float32, np.float64]
    assert single == double
    assert single.rows(0, 20) == double.rows(0, 20)
    assert single.take([1, 17, 2]) == double.take([1, 17, 2])


def test_a_column_too_few_is_refused():
    with pytest.raises(ValueError, match="zip"):
        Dataset(MIXED, mixed().columns[:-1])


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(DataError, match=r"all columns must be of one length, not \[2, 3\]"):
        Dataset(MIXED, (mixed().columns[0][:2], *mixed().columns[1:]))


@pytest.mark.parametrize("place", [1, 2, 3, 4])
@pytest.mark.parametrize("code", [99, -2, 2**32])
def test_a_code_that_is_no_category_is_refused(place, code):
    columns = list(mixed().columns)
    columns[place] = np.array([0, code, 1])
    with pytest.raises(DataError, match=f"/{MIXED.features[place].name}: must be .* of codes from -1") as caught:
        Dataset(MIXED, tuple(columns))
    assert [fault.code for fault in caught.value.faults] == ["not_legal"]


def test_codes_of_a_feature_without_categories_and_a_column_of_two_axes_are_refused():
    bare = Schema((Feature("c", FeatureKind.NOMINAL), Feature("n", FeatureKind.NUMERIC)))
    assert Dataset(bare, (np.array([-1, -1]), np.zeros(2))).rows() == [{"c": None, "n": 0.0}] * 2
    with pytest.raises(DataError, match=r"/c: must be .* of codes from -1"):
        Dataset(bare, (np.array([0, -1]), np.zeros(2)))
    with pytest.raises(DataError, match=r"/c: must be .* of codes from -1"):
        Dataset(bare, (np.array([-0.5, -1.0]), np.zeros(2)))
    with pytest.raises(DataError, match=r"/n: must be .* one axis"):
        Dataset(bare, (np.array([-1, -1]), np.zeros((2, 2))))
    with pytest.raises(DataError, match=r"/c: must be .* of codes"):
        Dataset(bare, (np.array(["x", "y"]), np.zeros(2)))


def test_rows_are_taken_by_a_mask_as_in_numpy():
    assert mixed().take([True, False, True]) == mixed().take(np.array([True, False, True])) == mixed().take([0, 2])
    with pytest.raises(IndexError):
        mixed().take([True, False])


@pytest.mark.parametrize("rows", [[0.5], [1.0], np.array([2.9, 0.1]), ["0"], [None]])
def test_row_numbers_that_are_not_integers_are_refused(rows):
    with pytest.raises(IndexError):
        mixed().take(rows)


@given(rows=st.lists(st.integers(-3, 2), max_size=6))
def test_taken_rows_are_those_rows_in_that_order(rows):
    taken = mixed().take(rows)
    assert taken.rows() == [ROWS[row] for row in rows]
    assert taken.schema == MIXED


@pytest.mark.parametrize("looked_at", ["before", "after"])
@pytest.mark.parametrize(("cells", "lacking", "of_two"), [("1,u\n2,v\n", "", ""), ("1,u\n,v\n2,\n", "ab", "a")])
def test_taken_rows_lack_what_they_lack_themselves(looked_at, cells, lacking, of_two):
    data = dataset_from_csv(f"a,b\n{cells}")
    if looked_at == "before":
        assert data.has_missing == set(lacking)
    assert data.take([0, 1]).has_missing == set(of_two)
    assert data.take([0]).has_missing == set()
    assert data.has_missing == set(lacking)


def test_attributes_that_can_never_be_tested_are_noticed():
    data = dataset_from_csv("a,b,c,y\n1,u,,p\n1,,,q\n", target="y")
    assert tuple(map(str, data.notices)) == (
        "attribute 'a' has one value and can never be tested",
        "attribute 'b' has one known value: a tree can only test whether its value is known",
        "attribute 'c' has no values and can never be tested",
    )
