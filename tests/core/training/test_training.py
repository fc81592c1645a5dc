"""Training: rows set aside before anything is learned, figures, progress, and what is refused."""

import random
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import (
    Cancelled,
    ConfigError,
    DataError,
    Dataset,
    Feature,
    FeatureKind,
    Holdout,
    NotApplicable,
    Progress,
    Role,
    Schema,
    dataset_from_csv,
    dataset_from_rows,
    evaluate,
    from_json,
    permutation_importances,
    predict,
    predict_table,
    profile,
    prune,
    summary,
    to_json,
    train,
    training_config,
)
from espalier.training.holdout_rows import held_out_rows


def classes(n=40, *, share=4):
    """One row in `share` is of class b."""
    return dataset_from_rows([{"x": n % 7, "z": n, "y": "b" if n % share == 0 else "a"} for n in range(n)], target="y")


def numbers(n=40):
    return dataset_from_rows([{"x": n % 7, "y": n / 3} for n in range(n)], target="y")


# The draw


def test_rows_may_be_numbers_of_numpy():
    expected = train(classes(), "cart", holdout=Holdout(rows=(0, 4, 7)))
    for rows in (np.array([0, 4, 7]), tuple(np.array([0, 4, 7])), [0, 4, 7]):
        model = train(classes(), "cart", holdout=Holdout(rows=rows))
        assert to_json(model) == to_json(expected)


@pytest.mark.parametrize("rows", [np.array([1.5]), np.array([[1]]), np.array([True]), "12"])
def test_rows_that_are_no_row_numbers_are_refused_with_their_path(rows):
    with pytest.raises(ConfigError) as caught:
        train(classes(), "cart", holdout=Holdout(rows=rows))
    assert [fault.path for fault in caught.value.faults] == ["/holdout/rows"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_model_of_a_table_is_evaluated_and_pruned_with_that_table(library):
    rows = [{"x": n % 7, "z": "uv"[n % 2], "y": "b" if n % 4 == 0 else "a"} for n in range(40)]
    module = pytest.importorskip(library)
    table = module.Table.from_pylist(rows) if library == "pyarrow" else module.DataFrame(rows)
    data = dataset_from_rows(rows, target="y")
    model = train(table, "cart", target="y", holdout={"fraction": 0.3})
    assert evaluate(model, table) == evaluate(model, data)
    assert predict_table(model, table).leaves.tolist() == predict_table(model, data).leaves.tolist()
    assert to_json(prune(model, "reduced_error", dataset=table).model) == to_json(
        prune(model, "reduced_error", dataset=data).model
    )
    assert permutation_importances(model, table, repeats=np.int64(2)) == permutation_importances(model, data, repeats=2)


@pytest.mark.parametrize("given", [None, "table.csv", {"x": [1]}])
def test_what_is_no_table_is_refused_as_such(given):
    for work in (lambda: evaluate(train(classes(), "cart"), given), lambda: profile(given)):
        with pytest.raises(DataError, match="must be a pandas, polars or pyarrow table"):
            work()


def test_the_stream_of_raw_numbers_is_the_one_that_was_published():
    # First line of the test set that came with the generator's own implementation in numpy.
    assert np.random.PCG64(0xDEADBEAF).random_raw() == 0x60D24054E17A0698


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_a_draw_takes_the_rows_of_the_smallest_raw_numbers(seed):
    raw = np.random.PCG64(seed).random_raw(10).tolist()
    smallest = sorted(sorted(range(10), key=lambda row: raw[row])[:5])
    assert held_out_rows(Holdout(0.5, seed, stratified=False), numbers(10)).tolist() == smallest


@given(fraction=st.floats(0.05, 0.95), seed=st.integers(0, 2**63 - 1), stratified=st.booleans())
def test_a_draw_is_the_same_everywhere_and_has_the_size_that_was_asked(fraction, seed, stratified):
    data = classes()
    holdout = Holdout(fraction, seed, stratified=stratified)
    drawn = held_out_rows(holdout, data).tolist()
    assert drawn == held_out_rows(Holdout(fraction, seed, stratified=stratified), classes()).tolist()
    assert drawn == sorted(set(drawn))
    groups = [10, 30] if stratified else [40]
    assert len(drawn) == sum(round(fraction * size) for size in groups)


@given(seed=st.integers(0, 10**6))
def test_a_stratified_draw_takes_the_same_share_of_each_class(seed):
    data = classes(100, share=5)
    drawn = held_out_rows(Holdout(0.3, seed), data)
    assert Counter(np.asarray(data.target)[drawn].tolist()) == {0: 24, 1: 6}


def test_a_stratified_draw_of_a_regression_is_a_plain_one():
    data = numbers()
    assert (
        held_out_rows(Holdout(0.3, 4), data).tolist() == held_out_rows(Holdout(0.3, 4, stratified=False), data).tolist()
    )


def test_other_seeds_draw_other_rows():
    draws = {tuple(held_out_rows(Holdout(0.3, seed), classes()).tolist()) for seed in range(20)}
    assert len(draws) == 20


def test_given_rows_are_taken_in_ascending_order():
    assert held_out_rows(Holdout(rows=(7, 2, 39)), classes()).tolist() == [2, 7, 39]


@pytest.mark.parametrize(
    "holdout",
    [
        Holdout(0.001),
        Holdout(0.999, stratified=False),
        Holdout(rows=tuple(range(40))),
        Holdout(rows=(40,)),
        Holdout(rows=(-1,)),
        Holdout(rows=(1, 1)),
        Holdout(rows=()),
        Holdout(),
        Holdout(-0.3),
        Holdout(1.5),
        Holdout(float("nan")),
        Holdout(0.3, seed=-1),
    ],
    ids=repr,
)
def test_a_holdout_that_takes_nothing_everything_or_what_is_not_there_is_refused(holdout):
    with pytest.raises(ConfigError) as caught:
        train(classes(), "cart", holdout=holdout)
    assert all(fault.path.startswith("/holdout") for fault in caught.value.faults)


# What is learned from what


def test_nothing_is_learned_from_rows_that_are_set_aside():
    data = classes()
    model = train(data, "cart", holdout=Holdout(0.3, 1))
    rows = held_out_rows(Holdout(0.3, 1), data)
    kept = data.take(np.setdiff1d(np.arange(40), rows))
    assert model.tree == train(kept, "cart").tree
    assert (model.training.n_rows, model.training.n_training_rows) == (40, 28)
    assert model.training.fingerprint == data.fingerprint
    answers = [answer.label for answer in predict(model, data.take(rows).rows())]
    errors = sum(answer != row["y"] for answer, row in zip(answers, data.take(rows).rows(), strict=True))
    assert model.training.held_out == {"n_rows": 12, "errors": errors, "accuracy": 1 - errors / 12}


def test_a_holdout_of_its_own_is_measured_on_and_everything_else_learned_from():
    data, other = classes(), classes(24)
    model = train(data, "cart", holdout=other)
    assert model.tree == train(data, "cart").tree
    assert (model.training.n_training_rows, model.training.held_out["n_rows"]) == (40, 24)
    assert model.training.holdout is None


def test_held_out_rows_without_weight_are_refused_before_a_tree_is_grown():
    rows = [{"x": x, "y": "ab"[x % 2], "w": float(x > 1)} for x in range(5)]
    progress = Progress()
    with pytest.raises(ConfigError, match="/holdout: the held-out rows have no weight") as refused:
        train(dataset_from_rows(rows, target="y", weight="w"), "cart", holdout={"rows": [0, 1]}, progress=progress)
    assert refused.value.faults[0].code == "no_weight"
    assert progress.phase == "waiting"


@pytest.mark.parametrize("preset", ["cart", "reptree"])
@pytest.mark.parametrize("n_rows", [0, 5])
def test_another_data_set_without_weight_is_refused_before_a_tree_is_grown(preset, n_rows):
    rows = dataset_from_rows([{"x": x, "y": "ab"[x % 2], "w": 1.0} for x in range(5)], target="y", weight="w")
    held_out = Dataset(rows.schema, (*rows.columns[:2], np.zeros(5))).take(range(n_rows))
    progress = Progress()
    with pytest.raises(ConfigError, match="/holdout: the held-out rows have no weight"):
        train(rows, preset, holdout=held_out, progress=progress)
    assert progress.phase == "waiting"


def test_a_weight_column_of_the_holdout_may_be_an_attribute_of_the_training_data():
    """Held-out rows of weight 2 and their repetition stop the growth at the same nodes."""
    rows = [{"x": x, "w": 2, "y": "ab"[x % 7 < 3]} for x in range(40)]
    held_out = dataset_from_rows(rows[5:15], target="y", weight="w")
    twice = dataset_from_rows(rows[5:15] * 2, target="y")
    trees = [
        train(dataset_from_rows(rows, target="y"), "cart", validation_stop=True, holdout=each).tree
        for each in (held_out, twice)
    ]
    assert trees[0] == trees[1]


def test_rows_of_another_table_stop_the_growth_whatever_the_length_of_the_names():
    names = [f"{'long ' * 5}{place}" for place in range(60)]  # 1,500 characters, more than a name may have
    rows = [{**dict.fromkeys(names, row % 3), "y": "ab"[row % 2]} for row in range(12)]
    data = dataset_from_rows(rows, target="y")
    assert train(data, "cart", pruning=None, validation_stop=True, holdout=dataset_from_rows(rows[1:], target="y"))


@pytest.mark.parametrize(
    ("held", "note"),
    [
        ("ab", "no row is of the class 'c', so no figure shows how it is answered"),
        ("ca", "no row is of the class 'b', so no figure shows how it is answered"),
        ("cc", "all rows are of the class 'c': no figure shows how others are answered"),
        ("abd", "1 row is of a class that the model has not learned: every answer to them is an error"),
        ("abc", None),
    ],
)
@pytest.mark.parametrize("fields", [{}, {"pruning": {"method": "reduced_error"}}, {"pruning": {"method": "rules"}}])
def test_a_class_that_the_held_out_rows_lack_is_a_note_of_the_model(held, note, fields):
    learned, held_out = (
        dataset_from_rows([{"x": "abcd".index(each), "y": each} for each in rows], target="y")
        for rows in ("abc" * 5, held)
    )
    model = train(learned, holdout=held_out, **fields)
    told = [each.removeprefix("held-out rows: ") for each in model.notes if each.startswith("held-out rows: ")]
    assert note in told if note else told == []
    assert set(summary(model)["notes"]) >= {f"held-out rows: {each}" for each in told}
    if "pruning" not in fields:
        whole = prune(model, "reduced_error", dataset=learned, holdout=dataset_from_rows(
            [{"x": 1, "y": "b"}, {"x": 0, "y": "a"}, {"x": 2, "y": "c"}], target="y"
        ))  # fmt: skip
        assert not any("held-out" in each for each in whole.model.notes)
        again = prune(whole.model, "reduced_error", dataset=learned, holdout=held_out)
        assert [each for each in again.trace.get("notes", []) if each in told] == told


def test_many_classes_that_the_held_out_rows_lack_are_counted_and_five_of_them_named():
    learned = dataset_from_rows([{"x": n, "y": f"c{n % 8}"} for n in range(16)], target="y")
    notes = train(learned, holdout={"rows": [0, 1]}).notes
    lacking = "no row is of 6 classes: 'c2', 'c3', 'c4', 'c5', 'c6', …, so no figure shows how they are answered"
    assert f"held-out rows: {lacking}" in notes


def test_a_row_without_weight_counts_for_nothing():
    rows = [{"x": n % 7, "y": "ab"[n % 7 > 3], "w": 1.0} for n in range(30)]
    noise = [{"x": n % 7, "y": "ab"[n % 7 <= 3], "w": 0.0} for n in range(30)]
    with_noise = dataset_from_rows([*rows, *noise], target="y", weight="w")
    without = dataset_from_rows(rows, target="y", weight="w")
    assert train(with_noise, "cart").tree == train(without, "cart").tree


def test_rows_that_remain_must_have_weight():
    rows = [{"x": n, "y": "ab"[n % 2], "w": float(n > 1)} for n in range(4)]
    data = dataset_from_rows(rows, target="y", weight="w")
    with pytest.raises(ConfigError, match="/holdout: the rows that remain to learn from have no weight"):
        train(data, "cart", holdout=Holdout(rows=(2, 3)))


def test_a_field_may_be_given_beside_a_preset_or_a_configuration():
    data = classes()
    by_name, by_config = train(data, "cart", max_depth=1), train(data, training_config("cart"), max_depth=1)
    assert to_json(by_name) == to_json(by_config)
    assert by_name.tree.depth == 1


def test_the_criterion_is_settled_by_the_task_and_kept_with_the_model():
    assert train(classes(), "cart").config.criterion == "gini"
    assert train(numbers(), "cart").config.criterion == "squared_error"


# What is refused


@pytest.mark.parametrize(
    ("data", "preset", "fields", "path"),
    [
        (classes(), "magic", {}, "/preset"),
        (classes(), "id3", {}, "/numeric"),
        (numbers(), "c45", {}, "/criterion"),
        (classes(), "cart", {"max_depth": -1}, "/max_depth"),
        (classes(), "cart", {"depth": 1}, "/depth"),
        (dataset_from_csv("x,y\n1,2\n"), "cart", {}, "/target"),
        (dataset_from_csv("x,y\n1,a\n2,a\n", target="y"), "cart", {}, "/target"),
        (dataset_from_csv("y\na\nb\n", target="y"), "cart", {}, "/attributes"),
        (dataset_from_csv("x,y\n1,a\n2,b\n", target="y", ignore=["x"]), "cart", {}, "/attributes"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_path(data, preset, fields, path):
    with pytest.raises(ConfigError) as caught:
        train(data, preset, **fields)
    assert path in {fault.path for fault in caught.value.faults}


def test_an_attribute_of_one_value_makes_one_leaf():
    model = train(dataset_from_csv("x,y\n1,a\n1,b\n1,b\n", target="y"))
    assert (model.tree.n_nodes, predict(model, [{}])[0].label) == (1, "b")


def test_one_row_of_a_regression_makes_one_leaf():
    model = train(dataset_from_csv("x,y\n1,2.5\n", target="y"))
    assert (model.tree.n_nodes, predict(model, [{}])[0].value) == (1, 2.5)


# Progress


def test_a_training_that_was_stopped_ends_with_cancelled():
    progress = Progress()
    progress.stop()
    with pytest.raises(Cancelled):
        train(classes(), "cart", progress=progress)


@pytest.mark.parametrize("seed", [3, 5, 11])
@pytest.mark.parametrize("missing", ["fractional", "spread"])
def test_rows_that_a_raised_branch_divides_are_counted_by_their_answers(seed, missing):
    """A raised test may lack a branch for a category that was elsewhere when it was made."""
    draw = random.Random(seed)
    rows = [
        {"a": draw.choice("uvwxyz"), "b": draw.choice("klmno"), "x": draw.randrange(6), "y": draw.choice("pq")}
        for _ in range(60)
    ]
    data = dataset_from_rows(rows, target="y")
    model = train(data, "c45", nominal="subset", missing=missing, min_weight_leaf=1)
    assert model.training.train == evaluate(model, data).figures()
    pruned = prune(model, "pessimistic", confidence=0.1, raising=False).model
    assert pruned.training.train == {"n_rows": 60}  # without the rows, nobody can say


def test_progress_ends_done():
    progress = Progress()
    assert (progress.phase, progress.share) == ("waiting", 0.0)
    train(classes(), "cart", progress=progress)
    assert progress.phase == "done"


def test_progress_may_be_stopped_from_another_thread():
    progress = Progress()
    thread = threading.Thread(target=progress.stop)
    thread.start()
    thread.join()
    with pytest.raises(Cancelled, match="stopped on request"):
        progress.check()


# Pruning is never on rows that were learned from


def test_a_model_trained_on_all_rows_is_not_pruned_without_other_rows():
    data = classes()
    model = train(data, "cart")
    with pytest.raises(NotApplicable, match="trained on all rows"):
        prune(model, "reduced_error", dataset=data)
    with pytest.raises(NotApplicable, match="learned from"):
        prune(model, "reduced_error", dataset=data, holdout=Holdout(0.3))
    with pytest.raises(NotApplicable, match="is the data set that the model was trained on"):
        prune(model, "reduced_error", holdout=classes())


def test_a_model_is_not_pruned_on_rows_beyond_those_set_aside():
    data = classes()
    model = train(data, "cart", holdout=Holdout(rows=(1, 2, 3)))
    assert prune(model, "reduced_error", dataset=data, holdout=Holdout(rows=(2, 3))).trace["held_out_rows"] == 2
    with pytest.raises(NotApplicable, match="1 of the 2 rows were learned from"):
        prune(model, "reduced_error", dataset=data, holdout=Holdout(rows=(3, 4)))


def test_the_remembered_rows_need_the_data_set_that_they_are_of():
    model = train(classes(), "cart", holdout=Holdout(0.3))
    with pytest.raises(NotApplicable, match="give that data set, too"):
        prune(model, "reduced_error")


@pytest.mark.parametrize("holdout", [None, Holdout(0.3), classes(24)])
def test_another_data_set_than_the_models_is_refused(holdout):
    model = train(classes(), "cart", holdout=Holdout(0.3))
    with pytest.raises(DataError, match="/dataset: is not the data set that the model was trained on"):
        prune(model, "reduced_error", dataset=classes(41), holdout=holdout)


def test_pruning_is_stopped_by_its_flag():
    progress = Progress()
    progress.stop()
    with pytest.raises(Cancelled):
        prune(train(classes(), "cart"), "reduced_error", holdout=classes(24), progress=progress)


# The summary


def test_a_summary_of_a_classification_has_what_a_person_asks_first():
    figures = summary(train(classes(), "cart", holdout=Holdout(0.3), max_depth=1))
    assert figures["task"] == "classification"
    assert (figures["n_rows"], figures["n_attributes"], figures["n_leaves"], figures["n_nodes"]) == (40, 2, 2, 3)
    assert (figures["depth"], figures["rmse"]) == (1, None)
    assert figures["train_accuracy"] == pytest.approx(1 - figures["train_errors"] / 28)
    assert figures["holdout"]["use"] == "holdout"
    assert figures["holdout"]["n_rows"] == 12


def test_a_summary_of_a_regression_has_its_error_and_no_accuracy():
    figures = summary(train(numbers(), "cart", max_depth=1))
    assert figures["rmse"] > 0
    assert (figures["train_errors"], figures["train_accuracy"], figures["holdout"]) == (None, None, None)


def test_a_model_that_was_read_back_can_be_pruned_on_the_remembered_rows():
    data = classes()
    model = train(data, "cart", holdout=Holdout(0.3, 2))
    again = from_json(to_json(model))
    assert to_json(prune(again, "reduced_error", dataset=data).model) == to_json(
        prune(model, "reduced_error", dataset=data).model
    )


def test_a_model_does_not_carry_the_ids_of_the_rows_it_was_trained_on() -> None:
    table = "id,x,y\n007,1,a\n0008,2,b\nclerk@example.org,3,a\n"
    data = dataset_from_csv(table, target="y", ignore=["id"])

    model = train(data, "cart")

    assert data.rows()[0]["id"] == "007"  # the data set shows it as it was written
    assert b"example.org" not in to_json(model)
    assert dataset_from_csv(table, schema=model.schema).fingerprint == data.fingerprint


# Single precision

PRECISION_CASES = {
    "cart": ("cart", {}, True),
    "c45": ("c45", {}, True),
    "j48": ("j48", {}, True),
    "reptree": ("reptree", {}, True),
    "imputed": ("cart", {"missing": "imputed"}, True),
    "surrogate": ("cart", {"missing": "surrogate", "max_depth": 4}, True),
    "regression": ("cart", {"missing": "imputed"}, False),
    "model tree": ("m5", {}, False),
}


@pytest.mark.parametrize(("preset", "fields", "of_classes"), PRECISION_CASES.values(), ids=PRECISION_CASES)
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
def test_numbers_given_in_single_precision_give_the_same_model(preset, fields, of_classes, share_missing):
    single, double = in_both_precisions(of_classes, share_missing)
    models = [train(data, preset, **fields) for data in (single, double)]
    assert to_json(models[0]) == to_json(models[1])
    assert evaluate(models[0], single).figures() == evaluate(models[0], double).figures()
    assert profile(single).to_dict() == profile(double).to_dict()


def in_both_precisions(of_classes, share_missing):
    """One table twice; some numbers of the first column are alike in their first 24 bits."""
    generator = np.random.default_rng(11)
    numbers = generator.normal(size=(3, 400)).astype(np.float32)
    numbers[0] = np.float32(1e7) + generator.integers(0, 200, 400)
    target = numbers[1] * numbers[2] + generator.normal(size=400) / 4
    numbers[generator.random(numbers.shape) < share_missing] = np.nan
    attributes = [Feature(f"x{place}", FeatureKind.NUMERIC) for place in range(3)]
    kind = FeatureKind.NOMINAL if of_classes else FeatureKind.NUMERIC
    categories = ("no", "yes") if of_classes else ()
    schema = Schema((*attributes, Feature("y", kind, Role.TARGET, categories)))
    answers = (target > 0).astype(np.int32) if of_classes else target.astype(np.float64)
    return Dataset(schema, (*numbers, answers)), Dataset(schema, (*numbers.astype(np.float64), answers))
