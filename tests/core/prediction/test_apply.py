"""Many rows by compiled code: leaves and answers are those of plain Python, row by row, for every strategy."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from espalier import Dataset, Feature, FeatureKind, Role, Schema, evaluate, from_document, to_document, train
from espalier.config.training_parameters import MISSING_STRATEGIES
from espalier.prediction import batch
from espalier.prediction.batch import predict_batch
from espalier.prediction.encode_columns import EncodedMatrix, encode_columns, encode_matrix
from espalier.prediction.encode_rows import EncodedRow
from espalier.prediction.tree_predictor import tree_predictor
from tests.core.growing_bridge import node_of
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, Cut, Known, Leaf, mixed_rows, plant, roots
from tests.reference.predictor import arrivals


def one_by_one(model, values):
    return [tree_predictor(model).answer(EncodedRow(tuple(column), (), ())) for column in values.T.tolist()]


def encoded(model, rows):
    return np.array([tree_predictor(model).encode(row).values for row in rows]).T.reshape(
        len(model.schema.attributes), -1
    )


def agrees(model, cells, values):
    singles = one_by_one(model, values)
    classes = bool(model.schema.classes)
    wanted = np.arange(values.shape[1]) % 3 - 1 if classes else None
    many = predict_batch(model, cells, shares=True, classes=wanted)
    assert many.leaves.tolist() == [one.leaf if len(one.visits) == 1 else -1 for one in singles]
    if not classes:
        assert many.answers.tolist() == [one.value for one in singles]
        return
    assert many.answers.tolist() == [one.code for one in singles]
    shares = np.array([[share for _, share in one.distribution] for one in singles])
    assert many.shares.tolist() == shares.tolist()
    named = np.where(wanted < 0, 0.0, shares[np.arange(len(shares)), np.maximum(wanted, 0)])
    assert many.share_of == pytest.approx(named, abs=1e-12)


@given(root=roots(MIXED), rows=st.lists(mixed_rows(), min_size=1, max_size=40))
def test_classes_of_planted_trees(root, rows):
    model = plant(MIXED, root)
    values = encoded(model, rows)
    agrees(model, EncodedMatrix(values), values)


@given(root=roots(NUMBERS), rows=st.lists(mixed_rows(), min_size=1, max_size=40))
def test_numbers_of_planted_trees(root, rows):
    model = plant(NUMBERS, root)
    values = encoded(model, rows)
    agrees(model, EncodedMatrix(values), values)


def test_a_threshold_in_a_test_of_whether_a_value_is_known_means_nothing():
    document = to_document(plant(MIXED, Known(0, (A, B))))
    document["tree"]["threshold"][0] = 0.5
    model = from_document(document)
    values = encoded(model, [{"length": -1}, {"length": 1}, {}])
    assert [answer.leaf for answer in one_by_one(model, values)] == [1, 1, 2]
    agrees(model, EncodedMatrix(values), values)


def table(n_rows, seed, *, n_classes=3, missing=0.15):
    """Numbers, categories and ordered ones, some missing; a target that depends on them."""
    random = np.random.default_rng(seed)
    x, z = random.integers(0, 20, n_rows) / 4, random.normal(size=n_rows)
    colour, size = random.integers(0, 4, n_rows).astype(np.int32), random.integers(0, 5, n_rows).astype(np.int32)
    signal = x + (colour == 2) * 2 + size - z + random.normal(size=n_rows)
    columns = [x.astype(np.float64), z, colour, size]
    for column in columns:
        column[random.random(n_rows) < missing] = -1 if column.dtype == np.int32 else np.nan
    features = [
        Feature("x", FeatureKind.NUMERIC),
        Feature("z", FeatureKind.NUMERIC),
        Feature("colour", FeatureKind.NOMINAL, categories=tuple("abcd")),
        Feature("size", FeatureKind.ORDINAL, categories=tuple(range(5))),
    ]
    if n_classes:
        bounds = np.quantile(signal, np.linspace(0, 1, n_classes + 1)[1:-1])
        target = np.digitize(signal, bounds).astype(np.int32)
        features.append(Feature("y", FeatureKind.NOMINAL, Role.TARGET, tuple(f"c{code}" for code in range(n_classes))))
    else:
        target = signal
        features.append(Feature("y", FeatureKind.NUMERIC, Role.TARGET))
    return Dataset(Schema(tuple(features)), (*columns, target))


@pytest.mark.parametrize("missing", MISSING_STRATEGIES)
@pytest.mark.parametrize("n_classes", [3, 0])
def test_trained_trees_under_every_strategy_of_missing_values(missing, n_classes):
    nominal = "subset" if missing == "surrogate" else "multiway"
    criterion = "information_gain" if n_classes else "squared_error"
    fields = {"missing": missing, "nominal": nominal, "criterion": criterion, "min_weight_leaf": 5}
    model = train(table(400, 1, n_classes=n_classes), "cart", **fields)
    data = table(700, 2, n_classes=n_classes, missing=0.3)
    agrees(model, encode_columns(model.schema, data, model.preparation.imputed), encode_matrix(model, data))


@pytest.mark.parametrize("missing", ["fractional", "majority", "surrogate"])
def test_shares_are_those_of_the_slow_twin(missing):
    nominal = "subset" if missing == "surrogate" else "multiway"
    model = train(table(300, 3), "cart", missing=missing, nominal=nominal, min_weight_leaf=5)
    data = table(200, 4, missing=0.4)
    root = node_of(model.tree, 0)
    shares = predict_batch(model, encode_columns(model.schema, data, model.preparation.imputed), shares=True).shares
    columns = [np.where(column < 0, np.nan, column) if column.dtype == np.int32 else column for column in data.columns]
    for place, row in enumerate(zip(*(column.tolist() for column in columns[:4]), strict=True)):
        ends = arrivals(root, [None if cell != cell else cell for cell in row], missing)  # noqa: PLR0124 - NaN
        expected = [sum(end.share * end.stats[code] / sum(end.stats) for end in ends) for code in range(3)]
        assert shares[place].tolist() == pytest.approx(expected, abs=1e-12)


def test_surrogates_are_used_where_they_were_learned():
    model = train(table(300, 3), "cart", missing="surrogate", nominal="subset", min_weight_leaf=5)
    assert len(model.tree.surrogates.feature) > 0
    unused = tree_predictor(model)
    without = [unused.fallback[node] for node in np.flatnonzero(np.diff(model.tree.surrogates.start)).tolist()]
    data = encode_matrix(model, table(300, 5, missing=0.4))
    nodes = np.flatnonzero(np.diff(model.tree.surrogates.start)).tolist()
    taken = [[unused.branch(node, column) for column in data.T.tolist()] for node in nodes]
    absent = [np.isnan(data[f]) | ((data[f] < 0) & (f > 1)) for f in model.tree.feature[nodes].tolist()]
    assert any(
        branch != usual
        for branches, usual, away in zip(taken, without, absent, strict=True)
        for branch, gone in zip(branches, away.tolist(), strict=True)
        if gone
    )


def test_a_surrogate_s_cut_is_halfway_to_the_next_value_of_any_row_of_the_node():
    # rpart 4.1.19, d the columns below: rpart(y ~ x + z, d, cp=0, minsplit=2, minbucket=1, maxdepth=1, xval=0)
    # prints `x< 6.5 3 0 0` and `x>=6.5 5 80 8`, and its `splits` a cut of z at 3.5 that agrees fully.
    none = float("nan")
    x, z = [1.0, 2.0, 3.0, 10.0, 11.0, 12.0, none, none], [1.0, 2.0, 3.0, 7.0, 8.0, 9.0, 4.0, 6.0]
    features = (Feature("x", FeatureKind.NUMERIC), Feature("z", FeatureKind.NUMERIC))
    schema = Schema((*features, Feature("y", FeatureKind.NUMERIC, role=Role.TARGET)))
    data = Dataset(schema, (np.array(x), np.array(z), np.array([0.0, 0, 0, 10, 10, 10, 10, 0])))
    tree = train(data, "cart", missing="surrogate", min_weight_leaf=1, max_depth=1).tree
    assert (tree.feature[0], tree.threshold[0]) == (0, 6.5)
    assert (tree.surrogates.feature.tolist(), tree.surrogates.threshold.tolist()) == ([1], [3.5])
    assert tree.weight.tolist() == [8.0, 3.0, 5.0]


def test_a_category_that_agrees_with_both_sides_alike_stands_in_for_the_side_of_most_rows():
    # rpart 4.1.19, d the columns below: rpart(y ~ x + k, d, cp=0, minsplit=2, minbucket=1, maxdepth=1, xval=0)
    # prints `x< 8 5 0 0` and `x>=8 9 22.22222 9.444444`; k agrees with 0.6 adjusted and `csplit` 1 3 3: c goes right.
    x = np.array([1.0, 2, 3, 4, 5, 11, 12, 13, 14, 15, 16, 17, 18, float("nan")])
    k = np.array([0, 0, 0, 0, 2, 1, 1, 1, 1, 1, 1, 0, 2, 2], dtype=np.int32)
    kinds = Feature("x", FeatureKind.NUMERIC), Feature("k", FeatureKind.NOMINAL, Role.ATTRIBUTE, ("a", "b", "c"))
    schema = Schema((*kinds, Feature("y", FeatureKind.NUMERIC, role=Role.TARGET)))
    data = Dataset(schema, (x, k, np.array([0.0] * 5 + [10.0] * 8 + [5.0])))
    tree = train(data, "cart", missing="surrogate", min_weight_leaf=1, max_depth=1).tree
    assert (tree.feature[0], tree.threshold[0]) == (0, 8.0)
    assert tree.surrogates.agreement.tolist() == pytest.approx([0.6])
    assert tree.surrogates.code_branch.tolist() == [0, 1, 1]
    assert tree.weight.tolist() == [14.0, 5.0, 9.0]


@pytest.mark.parametrize(("y", "sides"), [((0.0, 10.0), [0, 1, 1]), ((10.0, 0.0), [0, 1, 0])])
def test_a_category_that_nothing_else_tells_stands_in_for_the_side_of_the_larger_mean(y, sides):
    # rpart 4.1.19, d the columns below: rpart(y ~ x + k, d, cp=0, minsplit=2, minbucket=1, maxdepth=1, xval=0) has
    # `csplit` 1 3 3 where y rises with x, and 3 1 3 with `x>=8` as its left branch where it falls.
    x = np.array([1.0, 2, 3, 4, 5, 11, 12, 13, 14, 15, float("nan")])
    k = np.array([0, 0, 0, 1, 2, 0, 1, 1, 1, 2, 2], dtype=np.int32)
    kinds = Feature("x", FeatureKind.NUMERIC), Feature("k", FeatureKind.NOMINAL, Role.ATTRIBUTE, ("a", "b", "c"))
    schema = Schema((*kinds, Feature("y", FeatureKind.NUMERIC, role=Role.TARGET)))
    data = Dataset(schema, (x, k, np.array([y[0]] * 5 + [y[1]] * 5 + [5.0])))
    tree = train(data, "cart", missing="surrogate", min_weight_leaf=1, max_depth=1).tree
    assert (tree.feature[0], tree.threshold[0]) == (0, 8.0)
    assert tree.surrogates.agreement.tolist() == pytest.approx([0.4])
    assert tree.surrogates.code_branch.tolist() == sides


def test_a_row_that_knows_nothing_goes_where_most_rows_went_those_sent_by_surrogates_among_them():
    # rpart 4.1.19, d the columns below: rpart(y ~ x + z, d, cp=0, minsplit=2, minbucket=1, maxdepth=1, xval=0) prints
    # `x< 8 5 0 0` and `x>=8 7 0 10`, and predicts 10 where x and z are missing: 5 rows know that x is less than 8, and
    # 4 that it is not.
    none = float("nan")
    x = np.array([1.0, 2, 3, 4, 5, 11, 12, 13, 14, none, none, none])
    z = np.array([1.0, 2, 3, 4, 15, 11, 12, 13, 5, 16, 17, 18])
    features = (Feature("x", FeatureKind.NUMERIC), Feature("z", FeatureKind.NUMERIC))
    schema = Schema((*features, Feature("y", FeatureKind.NUMERIC, role=Role.TARGET)))
    data = Dataset(schema, (x, z, np.array([0.0] * 5 + [10.0] * 7)))
    model = train(data, "cart", missing="surrogate", min_weight_leaf=1, max_depth=1)
    assert (model.tree.feature[0], model.tree.threshold[0]) == (0, 8.0)
    assert model.tree.weight.tolist() == [12.0, 5.0, 7.0]
    assert tree_predictor(model).answer(EncodedRow((none, none), (), ())).value == 10.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_matrix_of_whole_rows_is_read_where_it_is(dtype):
    random = np.random.default_rng(0)
    rows = random.integers(-8, 8, (500, 3)).astype(dtype) / 4
    rows[random.random(rows.shape) < 0.1] = np.nan
    schema = Schema(
        (
            *(Feature(f"x{place}", FeatureKind.NUMERIC) for place in range(3)),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b")),
        )
    )
    target = (random.random(500) < 0.5).astype(np.int32)
    data = Dataset(schema, (*(rows[:, place].astype(np.float64) for place in range(3)), target))
    model = train(data, "cart", missing="fractional")
    agrees(model, EncodedMatrix(rows.T), rows.T.astype(np.float64))


@pytest.mark.parametrize("max_depth", [1, 3, 8, 11, None])
def test_complete_trees_and_deep_ones_lead_to_the_same_leaves(max_depth):
    random = np.random.default_rng(3)
    features = [Feature(f"x{place}", FeatureKind.NUMERIC) for place in range(3)]
    schema = Schema((*features, Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b"))))
    rows = random.normal(size=(6000, 3))
    model = train(Dataset(schema, (*rows.T, random.integers(0, 2, 6000).astype(np.int32))), "cart", max_depth=max_depth)
    asked = random.normal(size=(500, 3))
    asked[random.integers(0, 500, 10), random.integers(0, 3, 10)] = np.nan
    asked[:3] = np.inf, -np.inf, 0.0
    agrees(model, EncodedMatrix(asked.T), asked.T)


def test_rows_beyond_one_block_and_one_thread_keep_their_places(monkeypatch):
    monkeypatch.setattr(batch, "MAX_BLOCK_ROWS", 64)
    model = train(table(400, 1), "c45", pruning=None)
    data = table(3000, 6)
    values = encode_matrix(model, data)
    agrees(model, encode_columns(model.schema, data, model.preparation.imputed), values)


def test_a_data_set_read_on_its_own_is_matched_by_name_and_label():
    model = train(table(400, 1), "c45", pruning=None)
    data = table(300, 7)
    colour = Feature("colour", FeatureKind.NOMINAL, categories=("mauve", "d", "c", "b", "a"))
    recoded = np.where(data.columns[2] < 0, -1, 4 - data.columns[2]).astype(np.int32)
    features = (data.schema.features[4], colour, *(data.schema.features[place] for place in (3, 0, 1)))
    columns = (data.columns[4], recoded, *(data.columns[place] for place in (3, 0, 1)))
    shuffled = Dataset(Schema(features), columns)
    leaves = [
        predict_batch(model, encode_columns(model.schema, each, model.preparation.imputed)).leaves.tolist()
        for each in (shuffled, data)
    ]
    assert leaves[0] == leaves[1]
    assert evaluate(model, shuffled) == evaluate(model, data)


@settings(max_examples=20)
@given(depth=st.integers(1, 60), value=st.one_of(st.none(), st.integers(-1, 61)))
def test_a_chain_is_followed_to_its_end(depth, value):
    root = Leaf((1.0, 0.0, 0.0))
    for threshold in range(depth):
        root = Cut(0, float(threshold), (Leaf((0.0, 1.0, 0.0)), root))
    model = plant(MIXED, Ask(1, (0, 1, 1), (root, Leaf((0.0, 0.0, 9.0)))))
    values = encoded(model, [{"length": value, "colour": "red"}, {"length": value}])
    agrees(model, EncodedMatrix(values), values)


@pytest.mark.parametrize("weights", [None, (1, 2, 3), (0, 0.25, 0.5)])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(
    "fields", [{}, {"max_depth": 3}, {"class_weight": "balanced"}, {"missing": "fractional"}, {"missing": "imputed"}]
)
def test_the_figures_of_a_training_are_those_of_an_evaluation_on_its_rows(weights, missing, fields):
    data = table(300, 8, missing=missing)
    if weights is not None:
        column = np.random.default_rng(9).choice(np.array(weights, dtype=np.float64), 300)
        features = (*data.schema.features, Feature("w", FeatureKind.NUMERIC, Role.WEIGHT))
        data = Dataset(Schema(features), (*data.columns, column))
    model = train(data, "cart", nominal="one_vs_rest", **fields)
    assert dict(model.training.train) == evaluate(model, data).figures()
