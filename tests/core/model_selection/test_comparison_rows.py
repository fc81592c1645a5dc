"""The rows that a comparison rests on: how many, of what weight, and what is odd about them."""

import numpy as np
import pytest

import espalier
from espalier.model_selection.candidates import Candidate
from espalier.model_selection.compare import compare
from espalier.model_selection.folds_and_label_noise import why_not_divided
from espalier.training.holdout_rows import held_out_rows
from tests.core.compared import drugs, stump_and_tree, weighted


def test_one_row_cannot_be_folded() -> None:
    with pytest.raises(espalier.ConfigError, match="folds need two rows or more, and there is 1") as refused:
        compare(drugs().take(np.array([0])), stump_and_tree(), folds=2)

    assert [fault.path for fault in refused.value.faults] == ["/folds"]


@pytest.mark.parametrize(
    ("asked", "n_tested"),
    [
        pytest.param({"folds": 5}, 200, id="each row once"),
        pytest.param({"holdout": espalier.Holdout(rows=(0, 1, 5))}, 3, id="the rows of one split"),
    ],
)
def test_a_comparison_tells_on_how_many_rows_it_rests(asked: dict[str, object], n_tested: int) -> None:
    found = compare(drugs(), stump_and_tree(), **asked)  # type: ignore[arg-type]

    assert found.n_tested == found.to_dict()["n_tested"] == n_tested


def test_the_confusion_matrices_of_all_folds_are_one() -> None:
    data = drugs()
    document = compare(data, stump_and_tree(), folds=5).to_dict()

    assert document["classes"] == list(data.schema.classes)
    for candidate in document["candidates"]:
        matrix = np.array(candidate["confusion"])
        assert matrix.sum(axis=1).tolist() == np.bincount(data.target, minlength=5).tolist()
        right = sum(accuracy * 40 for accuracy in candidate["figures"]["accuracy"]["folds"])
        assert np.trace(matrix) == pytest.approx(right)


@pytest.mark.parametrize("asked", [{"holdout": espalier.Holdout(rows=(0, 1, 2))}, {"folds": [0, 0, 0, 1, 1, 1]}])
def test_a_comparison_does_not_rest_on_rows_without_weight(asked: dict[str, object]) -> None:
    found = compare(weighted([1, 0, 0, 2, 1, 3]), stump_and_tree(), **asked)  # type: ignore[arg-type]

    assert found.n_tested == (1 if "holdout" in asked else 4)


def test_a_class_of_which_no_row_was_learned_is_told_of_though_the_table_lists_it() -> None:
    listed = [{"x": x, "y": "ab"[x > 9]} for x in range(20)] + [{"x": 3, "y": "rare"} for _ in range(4)]
    rules = Candidate("rules", espalier.training_config("cart", pruning={"method": "rules", "estimate": "pessimistic"}))
    holdout = espalier.Holdout(rows=(0, 10, 20, 21, 22, 23))

    found = compare(espalier.dataset_from_rows(listed, target="y"), [*stump_and_tree(), rules], holdout=holdout)

    note = "4 rows are of a class that the model has not learned: every answer to them is an error"
    assert [result.notes for result in found.results] == [(note,)] * 3


def test_a_category_that_nobody_has_seen_is_told_of_once_and_of_rules_too() -> None:
    listed = [{"c": "pqr"[row % 3], "y": "ab"[row % 3 > 0]} for row in range(30)]
    data = espalier.dataset_from_rows(listed, target="y")
    tested = [{"c": "s", "y": "a"}, {"c": None, "y": "b"}, {"c": "s", "y": "b"}, {"c": "p", "y": "a"}]
    rules = Candidate("rules", espalier.training_config("cart", pruning={"method": "rules", "estimate": "pessimistic"}))
    tree = Candidate("tree", espalier.training_config("cart"))

    found = compare(data, [tree, rules], holdout=espalier.dataset_from_rows(tested, like=data.schema))

    for result, asked in zip(found.results, ("the tree tests", "the rules test"), strict=True):
        assert result.notes == (
            "2 rows have a category that the model has not seen: it counts as missing",
            f"1 row has no value of any attribute that {asked}",
        )


def test_rows_to_test_on_that_have_no_weights_are_told_of() -> None:
    tested = espalier.dataset_from_rows([{"a": 1, "y": "y"}, {"a": 2, "y": "n"}], target="y")

    found = compare(weighted([1, 2, 3, 1, 2, 3]), stump_and_tree(), holdout=tested)

    assert all(
        result.notes == ("the rows have no weights ('w' is missing): each counts 1",) for result in found.results
    )


def test_what_is_odd_about_the_rows_of_one_split_is_said_of_each_candidate() -> None:
    data = drugs()
    first = int(np.flatnonzero(data.columns[-1] == 0)[0])
    same = tuple(np.flatnonzero(data.columns[-1] == data.columns[-1][first])[:4].tolist())
    rules = Candidate("rules", espalier.training_config("cart", pruning={"method": "rules"}))

    split = compare(data, [*stump_and_tree(), rules], holdout=espalier.Holdout(rows=same))
    folded = compare(data, stump_and_tree(), folds=[int(row in same) for row in range(200)])

    label = data.schema.classes[0]
    for candidate in split.to_dict()["candidates"]:
        assert any(label in note for note in candidate["notes"]), candidate
    assert all("notes" not in candidate for candidate in folded.to_dict()["candidates"])


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        *[pytest.param({"seed": seed}, "/seed", id=f"seed {seed}") for seed in (-1, 2**63, 1.5, True, "1", None)],
        pytest.param({"holdout": espalier.Holdout(rows=(200,))}, "/holdout/rows", id="no such row"),
        pytest.param({"holdout": espalier.Holdout(fraction=2.0)}, "/holdout/fraction", id="no share"),
        pytest.param({"holdout": espalier.Holdout(fraction=0.001)}, "/holdout", id="no rows"),
        pytest.param({"holdout": 0.3}, "/holdout", id="no holdout"),
    ],
)
def test_a_seed_or_a_holdout_that_is_not_legal_is_refused_with_its_path(asked: dict[str, object], path: str) -> None:
    with pytest.raises(espalier.ConfigError) as caught:
        compare(drugs(), stump_and_tree(), **asked)  # type: ignore[arg-type]
    assert [fault.path for fault in caught.value.faults] == [path]


def test_numbers_of_numpy_are_numbers() -> None:
    plain = compare(drugs(), stump_and_tree(), folds=3, seed=1, label_noise=0.5)
    of_numpy = compare(drugs(), stump_and_tree(), folds=np.int64(3), seed=np.int64(1), label_noise=np.float32(0.5))
    assert [each.evaluations for each in of_numpy.results] == [each.evaluations for each in plain.results]


def test_a_holdout_may_be_given_as_json() -> None:
    results = [
        compare(drugs(), stump_and_tree(), holdout=holdout).results
        for holdout in (espalier.Holdout(rows=(0, 1, 5)), {"rows": [0, 1, 5]})
    ]
    assert results[0][0].evaluations == results[1][0].evaluations


@pytest.mark.parametrize(
    ("weights", "asked", "path", "what"),
    [
        pytest.param([1, 1, 0, 0, 1, 1], {"folds": [0, 0, 1, 1, 2, 2]}, "/folds", "fold 2 of 3", id="a fold"),
        pytest.param([0, 0, 1, 1], {"folds": [0, 0, 1, 1]}, "/folds", "fold 1 of 2", id="the first fold"),
        pytest.param([1, 1, 0, 0], {"folds": [0, 0, 1, 1]}, "/folds", "outside fold 1 of 2", id="the rest"),
        pytest.param([1, 1, 1, 0], {"folds": 4}, "/folds", "of 4", id="a fold a row"),
        pytest.param([1, 1, 0, 0], {"holdout": espalier.Holdout(rows=(2, 3))}, "/holdout", "the holdout", id="rows"),
    ],
)
def test_a_test_on_rows_without_weight_is_refused_before_anything_is_trained(
    weights: list[int], asked: dict[str, object], path: str, what: str
) -> None:
    with pytest.raises(espalier.ConfigError) as caught:
        compare(weighted(weights), stump_and_tree(), **asked)  # type: ignore[arg-type]
    (fault,) = caught.value.faults
    assert (fault.path, fault.code) == (path, "no_weight")
    assert what in fault.message


def test_a_light_row_is_a_row_with_weight() -> None:
    """1 + 1 + 1e-20 is rounded to 2, the weight of the rows that are held out."""
    candidates = [Candidate("cart", espalier.training_config("cart"))]
    espalier.check_candidate_rows(weighted([1, 1, 1e-20]), candidates, holdout={"rows": [0, 1]})


def test_rounded_sums_of_weights_do_not_hide_that_no_weight_is_left() -> None:
    """All rows with weight are held out. The sum of their weights is less than the sum of all weights, by rounding."""
    weights, is_held_out = np.round(np.random.default_rng(10).random(40), 1) + 0.1, np.arange(40) % 4 != 0
    weights[~is_held_out] = 0
    assert weights.sum() > weights[is_held_out].sum()
    candidates, rows = [Candidate("cart", espalier.training_config("cart"))], np.flatnonzero(is_held_out)

    with pytest.raises(espalier.ConfigError, match="outside the holdout have no weight"):
        espalier.check_candidate_rows(weighted(list(weights)), candidates, holdout={"rows": rows.tolist()})


def test_training_rows_without_weight_are_refused_beside_a_holdout_of_another_data_set() -> None:
    candidates, data = [Candidate("cart", espalier.training_config("cart"))], weighted([0, 0, 0, 1])

    with pytest.raises(espalier.ConfigError, match="nothing can be learned") as caught:
        espalier.check_candidate_rows(data.take(np.arange(3)), candidates, holdout=weighted([1, 1]))
    assert [(fault.path, fault.code) for fault in caught.value.faults] == [("/holdout", "no_weight")]


@pytest.mark.parametrize(
    ("weights", "folds"),
    [
        pytest.param([1, 1], [0, 1], id="a third of one row"),
        pytest.param([1, 1, 1, 1], [0, 0, 0, 1], id="a third of one row in one of the folds"),
        pytest.param([1, 1, 1, 0, 0, 1], [0, 0, 0, 1, 1, 1], id="rows of weight on one side only"),
    ],
)
def test_rows_that_cannot_be_set_aside_in_a_fold_are_the_candidates_fault(weights: list[int], folds: list[int]) -> None:
    grown = Candidate("grown", espalier.training_config("cart"))
    pruned = Candidate("pruned", espalier.training_config("cart", pruning={"method": "reduced_error"}))
    stopped = Candidate("stopped", espalier.training_config("cart", validation_stop=True))

    with pytest.raises(espalier.ConfigError) as caught:
        compare(weighted(weights), [grown, pruned, stopped], folds=folds)

    paths = [fault.path for fault in caught.value.faults]
    assert paths == ["/candidates/1/pruning", "/candidates/2/validation_stop"]


@pytest.mark.parametrize("is_stratified", [False, True])
def test_a_holdout_is_possible_exactly_if_it_can_be_drawn_from_the_training_rows_of_every_fold(
    *, is_stratified: bool
) -> None:
    random, found = np.random.default_rng(7), []
    for fraction in [0.1, 0.3, 0.5, 0.7, 0.9] * 40:
        holdout = espalier.Holdout(fraction=fraction, stratified=is_stratified)
        weights = random.integers(random.integers(2), 3, size=random.integers(4, 12))
        data, fold = weighted(weights.tolist()), random.permutation(len(weights)) % random.integers(2, 4)
        tests = [np.flatnonzero(fold == each) for each in np.unique(fold)]
        found.append(why_not_divided(data, tests, holdout) is None)
        assert found[-1] == all(
            can_be_drawn(holdout, data.take(np.delete(np.arange(len(fold)), rows))) for rows in tests
        )
    assert set(found) == {False, True}


def can_be_drawn(holdout: espalier.Holdout, rows: espalier.Dataset) -> bool:
    try:
        aside = held_out_rows(holdout, rows)
    except espalier.ConfigError:
        return False
    return bool(0 < rows.weight[aside].sum() < rows.weight.sum())
