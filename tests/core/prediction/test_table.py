"""Answers to tables: row by row those of the same rows asked one by one."""

from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from hypothesis import example, given, strategies as st

from espalier import (
    ConfigError,
    DataError,
    Dataset,
    Feature,
    FeatureKind,
    Role,
    RowError,
    Schema,
    TooLarge,
    dataset_from_columns,
    dataset_from_rows,
    evaluate,
    explain,
    leaf_prediction,
    permutation_importances,
    predict,
    predict_each,
    predict_table,
    prune,
    rule_of,
    train,
    with_missing_strategy,
)
from tests.core.planted import MIXED, NUMBERS, Cut, Leaf, mixed_rows, plant, roots
from tests.core.prediction.test_apply import table


def as_table(model, rows):
    """The rows as a data set; categories that the model does not know stand after its own."""
    columns = {feature.name: [row.get(feature.name) for row in rows] for feature in model.schema.attributes}
    return dataset_from_columns(columns, like=model.schema)


def assert_same(model, dataset, rows, missing=None):
    answers = predict_table(model, dataset, missing=missing)
    singles = predict(model, rows, missing=missing)
    assert answers.leaves.tolist() == [one.leaf for one in singles]
    assert sorted(answers.several) == [place for place, one in enumerate(singles) if len(one.visits) > 1]
    for place, one in enumerate(singles):
        names = [feature.name for feature in model.schema.attributes]
        assert tuple(np.array(names, dtype=object)[answers.missing[:, place]]) == one.row.missing
        assert tuple(np.array(names, dtype=object)[answers.unseen[:, place]]) == one.row.unseen
        if place in answers.several:
            together = answers.several[place]
            assert (together.to_dict(), together.visits) == (one.to_dict(), one.visits)
        else:
            leaf = leaf_prediction(with_missing_strategy(model, missing), one.leaf)
            assert (leaf.label, leaf.distribution, leaf.confidence) == (one.label, one.distribution, one.confidence)
            assert (leaf.support, leaf.std, leaf.nodes) == (one.support, one.std, one.nodes)
        if answers.numbers is not None:
            assert answers.numbers[place] == one.value
    assert answers.labels() == ([one.label for one in singles] if model.schema.classes else [])


@pytest.mark.parametrize("schema", [MIXED, NUMBERS], ids=["classes", "numbers"])
def test_planted_trees_answer_tables_as_rows(schema):
    @given(
        root=roots(schema),
        rows=st.lists(mixed_rows(), min_size=1, max_size=12),
        missing=st.sampled_from([None, "fractional", "last_prediction", "majority"]),
    )
    def holds(root, rows, missing):
        model = plant(schema, root)
        assert_same(model, as_table(model, rows), rows, missing)

    holds()


@pytest.mark.parametrize("preset", ["m5", "reptree"])
def test_linear_and_backfitted_leaves_answer_each_row_with_its_number(preset):
    data = table(400, 1, n_classes=0)
    model = train(data, preset)
    asked = table(100, 2, n_classes=0)
    assert_same(model, asked, [{name: cell for name, cell in row.items() if name != "y"} for row in asked.rows()])


def test_rules_answer_tables_as_rows():
    data = table(300, 3)
    model = prune(train(data, "c45", pruning=None), "rules", dataset=data, estimate="pessimistic").model
    assert_same(model, table(200, 4), table(200, 4).rows())


def test_attributes_that_a_table_lacks_are_missing_in_every_row():
    model = train(table(300, 5), "c45")
    whole = table(50, 6)
    some = Dataset(Schema(whole.schema.features[1:3]), whole.columns[1:3])
    rows = [{name: row[name] for name in ("z", "colour")} for row in whole.rows()]
    assert_same(model, some, rows)


def test_numbers_as_categories_are_the_same_however_they_are_written():
    features = (
        Feature("n", FeatureKind.NOMINAL, categories=(1, 2, 2.5)),
        Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b", "c")),
    )
    data = Dataset(Schema(features), (np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 2, 2])))
    model = train(data, "id3")
    floats = Feature("n", FeatureKind.NOMINAL, categories=(2.0, 1.0, True, 3.0))
    asked = Dataset(Schema((floats,)), (np.array([0, 1, 3, -1]),))
    assert_same(model, asked, asked.rows())


def test_the_missing_values_of_the_model_are_missing_in_a_data_set_that_was_read_without_them():
    rows = [{"x": float(x), "c": c, "y": x < 5} for x, c in zip(range(10), "abababab-b", strict=True)]
    rows += [{"x": -999, "c": "-", "y": True}] * 3
    model = train(dataset_from_rows(rows, target="y", missing_values=["-999", "-"]), "cart", min_weight_split=2)
    cells = [{"x": -999.0, "c": "-"}, {"x": 8.0, "c": "a"}, {"x": 1.0, "c": "other"}]
    asked = dataset_from_rows(cells, missing_values=[])
    assert asked.rows() == cells
    assert_same(model, asked, cells)
    assert predict_table(model, asked).missing.tolist() == [[True, False, False]] * 2


@pytest.mark.parametrize("ask", [predict_each, predict_table])
def test_rows_that_take_several_branches_have_no_more_paths_than_allowed(ask):
    above = Cut(2, 0.0, (Leaf((1.0, 2.0, 0.0)), Leaf((0.0, 2.0, 1.0))))
    model = plant(MIXED, Cut(0, 0.0, (Leaf((3.0, 0.0, 0.0)), above)))
    size = model.schema.attributes[2].categories[0]
    rows = [{"length": 1.0, "size": size}] * 9 + [{}, {"size": size}, {"length": 1.0}, {"length": -1.0}]
    n_paths = 3 + 2 + 2  # of the rows with several
    asked = as_table(model, rows)
    assert len(getattr(ask(model, asked, most_paths=n_paths), "leaves", rows)) == len(rows)
    with pytest.raises(TooLarge, match=r"too many paths .* at most 6 are allowed"):
        ask(model, asked, most_paths=n_paths - 1)


def test_a_sentence_of_an_answer_is_that_of_its_explanation():
    for model in (train(table(200, 7), "c45"), train(table(200, 7, n_classes=0), "m5")):
        for one in explain(
            model, table(40, 8).rows(0, 40) if model.schema.classes else table(40, 8, n_classes=0).rows()
        ):
            assert rule_of(model, one.prediction) == one.rule


def test_a_table_of_another_kind_is_refused():
    model = train(table(100, 9), "c45")
    text = Dataset(Schema((Feature("x", FeatureKind.NOMINAL, categories=("a",)),)), (np.array([0]),))
    with pytest.raises(DataError, match="must be numeric"):
        predict_table(model, text)
    with pytest.raises(ConfigError):
        predict_table(model, table(5, 9), missing="surrogate")


LABELS = st.sampled_from(["a", "b", "7", "7.5", "true", "FALSE", 7, 8, 7.5, 0.25, 2**53 - 1, 2**60, True, False])


@given(known=st.lists(LABELS, min_size=1, max_size=3), cells=st.lists(LABELS | st.none(), min_size=1, max_size=3))
@example(known=["a", "b"], cells=[0])
@example(known=["a", "b"], cells=[2**60])
@example(known=[7, 8], cells=["a"])
@example(known=[False], cells=["true"])
def test_a_table_is_refused_exactly_if_its_rows_are(known, cells):
    categories = tuple({(type(label), label): label for label in map(exact, known)}.values())
    model = train(with_classes(Feature("c", FeatureKind.NOMINAL, categories=categories)), "id3")
    rows = [{"c": cell} for cell in cells]
    for given_table in (
        dataset_from_rows(rows, like=model.schema),
        dataset_from_columns({"c": cells}, like=model.schema),
    ):
        try:
            expected = predict(model, rows)
        except RowError as error:
            message = error.faults[0].message
            with pytest.raises(DataError, match=message) as refused:
                predict_table(model, given_table)
            bad = [fault.path.split("/")[1] for fault in error.faults]
            ((path, code, text),) = [(fault.path, fault.code, fault.message) for fault in refused.value.faults]
            assert (path, code) == ("/c", "wrong_type")
            assert text.startswith(f"{message}: {len(bad)} cell")
            assert f"(row {', '.join(bad)}, counted" in text
        else:
            answers = predict_table(model, given_table)
            assert answers.unseen[0].tolist() == [bool(one.row.unseen) for one in expected]


@pytest.mark.parametrize("ask", [evaluate, predict_table, permutation_importances])
def test_numbers_for_an_attribute_of_texts_are_refused_wherever_a_table_is_read(ask):
    model = train(dataset_from_columns({"c": list("aabbcc"), "y": list("nnyyny")}, target="y"), "c45")
    with pytest.raises(DataError, match="/c: must be text, or null for missing: 3 cells"):
        ask(model, dataset_from_columns({"c": [0, 1, 2], "y": ["n", "y", "n"]}, like=model.schema))
    with pytest.raises(DataError, match=r"/c: must be text, or null for missing: 1 cell \(row 1,"):
        ask(model, dataset_from_columns({"c": ["a", True, "d"], "y": ["n", "y", "n"]}, like=model.schema))


def test_a_category_of_another_type_that_no_row_has_is_not_refused():
    model = train(table(100, 9), "c45")
    whole = table(20, 9)
    place = whole.schema.place("colour")
    features = list(whole.schema.features)
    features[place] = replace(features[place], categories=(*features[place].categories, 7))
    wider = Dataset(Schema(tuple(features)), whole.columns)
    assert predict_table(model, wider).labels() == predict_table(model, whole).labels()


@pytest.mark.parametrize("categories", [("no", "yes"), (0, 1), (False, True), (True,)])
def test_a_third_category_of_a_boolean_attribute_is_read_as_in_a_row(categories):
    model = train(with_classes(Feature("c", FeatureKind.BOOLEAN, categories=categories)), "id3")
    for cells in (["maybe", "never", None], [2, 3], ["maybe", categories[0]], [False, True], ["true", "false"]):
        rows = [{"c": cell} for cell in cells]
        try:
            expected = predict(model, rows)
        except RowError as error:
            with pytest.raises(DataError, match=f"/c: {error.faults[0].message}"):
                predict_table(model, dataset_from_rows(rows, like=model.schema))
        else:
            answers = predict_table(model, dataset_from_rows(rows, like=model.schema))
            assert answers.unseen[0].tolist() == [bool(one.row.unseen) for one in expected]


def test_known_categories_of_a_boolean_attribute_make_the_data_set_of_training():
    data = with_classes(Feature("c", FeatureKind.BOOLEAN, categories=("no", "yes")))
    assert dataset_from_rows(list(data.rows()), like=data.schema).fingerprint == data.fingerprint


def with_classes(feature):
    """A data set with an attribute whose categories each occur twice, once in each class."""
    codes = np.repeat(np.arange(len(feature.categories), dtype=np.int32), 2)
    target = Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b"))
    return Dataset(Schema((feature, target)), (codes, np.arange(len(codes), dtype=np.int32) % 2))


def exact(label):
    """A label of a schema: whole numbers beyond 2^53 are texts."""
    return str(label) if isinstance(label, int) and abs(label) > 2**53 else label


class CountedName(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    n_comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountedName.n_comparisons += 1
        return str.__eq__(self, other)


def test_the_columns_of_a_wide_table_are_found_without_a_search_for_each():
    n_columns = 200
    columns = {f"c{place}": [1.0, 2.0] for place in range(n_columns)}
    model = train(dataset_from_columns(columns | {"y": ["p", "q"]}, target="y"), "cart")
    features = [Feature(CountedName(feature.name), feature.kind) for feature in model.schema.attributes]
    for wide_table in (
        Dataset(Schema(tuple(features)), tuple(np.array([1.0, 2.0]) for _ in features)),
        pyarrow.table(columns),
    ):
        wide = replace(model, schema=Schema((*features, model.schema.target)))
        CountedName.n_comparisons = 0
        assert predict_table(wide, wide_table).labels() == ["p", "q"]
        # A linear search for each column would compare 20,000 times.
        assert CountedName.n_comparisons < 20 * n_columns
