"""Arrays that are trained from where they are: the same models, no column kept, no cell of the array changed."""

import numpy as np
import pytest

import espalier
from espalier import Dataset, Feature, FeatureKind, Role, Schema, TreeClassifier, TreeRegressor
from espalier.lent import LentColumns, LentDataset
from espalier.memory import LEAST_IN_LARGE_PAGES, lines

N_ROWS, N_COLUMNS = 5_000, 6


def drawn(kind=np.float32):
    """Columns of many values and, at the end, of few."""
    generator = np.random.default_rng(8)
    matrix = generator.standard_normal((N_ROWS, N_COLUMNS)).astype(np.float32).astype(kind)
    matrix[:, -2:] = np.round(matrix[:, -2:])
    return matrix


def numbers_of(matrix):
    return matrix[:, 0] * matrix[:, 1] + matrix[:, -1]


def classes_of(matrix):
    return (numbers_of(matrix) > 0).astype(np.int64)


def schema_of(target):
    attributes = (Feature(f"x{place}", FeatureKind.NUMERIC) for place in range(N_COLUMNS))
    return Schema((*attributes, target), ())


NUMBER = Feature("y", FeatureKind.NUMERIC, Role.TARGET)
CLASS = Feature("y", FeatureKind.NOMINAL, Role.TARGET, (0, 1))

LAYOUTS = {
    "row by row": np.ascontiguousarray,
    "column by column": np.asfortranarray,
    "every other row": lambda matrix: np.repeat(matrix, 2, axis=0)[::2],
    "a part of a wider one": lambda matrix: np.hstack([matrix, matrix])[:, :N_COLUMNS],
    "backwards": lambda matrix: np.ascontiguousarray(matrix[::-1, ::-1])[::-1, ::-1],
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_in_any_layout_gives_the_model_of_its_columns(layout, kind):
    matrix = LAYOUTS[layout](drawn(kind))
    known = matrix.copy()
    columns = [np.array(column, dtype=np.float64) for column in known.T]
    expected = espalier.train(Dataset(schema_of(NUMBER), (*columns, numbers_of(known).astype(np.float64))), "cart")

    model = TreeRegressor("cart").fit(matrix, numbers_of(known)).model_

    assert espalier.to_json(model) == espalier.to_json(expected)
    assert np.array_equal(matrix, known)


@pytest.mark.parametrize("preset", ["cart", "c45", "reptree"])
def test_every_grower_and_pruner_takes_a_lent_array(preset):
    matrix = drawn()
    codes = classes_of(matrix).astype(np.int32)
    expected = espalier.train(Dataset(schema_of(CLASS), (*(column.copy() for column in matrix.T), codes)), preset)

    model = TreeClassifier(preset).fit(matrix, codes).model_

    assert espalier.to_json(model) == espalier.to_json(expected)


def test_rows_without_weight_and_missing_cells_are_learned_from_as_in_a_data_set():
    matrix = drawn()
    matrix[::7, 2] = np.nan
    weight = np.where(np.arange(N_ROWS) % 5 == 0, 0.0, 1.0)
    attributes = schema_of(CLASS).features
    schema = Schema((*attributes, Feature("sample_weight", FeatureKind.NUMERIC, Role.WEIGHT)), ())
    columns = [column.copy() for column in matrix.T]
    expected = espalier.train(Dataset(schema, (*columns, classes_of(matrix).astype(np.int32), weight)), "cart")

    model = TreeClassifier("cart").fit(matrix, classes_of(matrix), weight).model_

    assert espalier.to_json(model) == espalier.to_json(expected)


def test_growing_lets_go_of_every_column_that_was_copied():
    matrix = drawn()
    dataset = LentDataset(schema_of(NUMBER), LentColumns(matrix), (numbers_of(matrix).astype(np.float64),))
    assert not any(np.shares_memory(column, matrix) for column in dataset.columns)

    espalier.train(dataset, "cart")

    assert all(np.shares_memory(column, matrix) for column in dataset.columns[:-1])


def test_a_lent_data_set_has_the_fingerprint_of_its_cells_before_and_after_its_columns_were_let_go():
    matrix = drawn()
    numbers = numbers_of(matrix).astype(np.float64)
    expected = Dataset(schema_of(NUMBER), (*(column.copy() for column in matrix.T), numbers)).fingerprint

    def lent():
        return LentDataset(schema_of(NUMBER), LentColumns(matrix), (numbers,))

    let_go = lent()
    for place in range(N_COLUMNS):
        let_go.attributes.let_go(place)
    assert (lent().fingerprint, let_go.fingerprint) == (expected, expected)


def test_a_column_that_was_let_go_is_read_where_it_lies_and_copied_where_it_is_asked_for_whole():
    matrix = drawn()
    columns = LentColumns(matrix)
    columns.let_go(3)
    assert np.array_equal(columns[3], matrix[:, 3])
    assert columns[3].flags.c_contiguous
    assert columns.read(3, np.array([4, 2])).tolist() == matrix[[4, 2], 3].tolist()
    assert [np.array_equal(column, matrix[:, place]) for place, column in enumerate(columns[2:5], 2)] == [True] * 3


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_number_of_an_array_is_refused_by_its_column(value):
    matrix = drawn()
    matrix[11, 4] = value
    with pytest.raises(espalier.InvalidInput) as caught:
        TreeRegressor().fit(matrix, np.arange(N_ROWS, dtype=np.float64))
    assert [fault.path for fault in caught.value.faults] == ["/x4"]


def test_the_middle_of_lines_that_is_given_back_takes_nothing_with_it():
    length = LEAST_IN_LARGE_PAGES // np.dtype(np.uint32).itemsize
    table = lines(3, length, np.uint32)
    table.array[:] = 7
    table.give_back(5_000, 200_000)
    kept = np.r_[0:5_000, 200_000:length]
    assert np.all(table.array[:, kept] == 7)
    assert np.count_nonzero(table.array == 0) > 3 * 190_000  # whole pages of it
