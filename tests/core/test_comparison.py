import numpy as np
import pytest
from scipy import stats

import espalier
from espalier.comparison import Candidate, PruningEffect, compare
from espalier.distributions import binomial_two_sided, student_t_two_sided
from espalier.paired_tests import paired_differences, resampled_t
from espalier.resampling import fold_of_rows, with_label_noise
from tests.factories import ROOT


def drugs() -> espalier.Dataset:
    return espalier.dataset_from_csv(ROOT / "service" / "examples" / "drug200.csv", target="Drug")


def stump_and_tree() -> list[Candidate]:
    return [
        Candidate("stump", espalier.training_config("cart", max_depth=1)),
        Candidate("tree", espalier.training_config("cart")),
    ]


@pytest.mark.parametrize("statistic", [0.0, 0.01, 1.0, 2.5, 40.0])
@pytest.mark.parametrize("degrees", [1, 2, 9, 250])
def test_students_t_agrees_with_scipy(statistic: float, degrees: int) -> None:
    assert student_t_two_sided(statistic, degrees) == pytest.approx(2 * stats.t.sf(statistic, degrees), rel=1e-10)


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (0, 1), (3, 10), (5, 10), (100, 3000), (1490, 3000)])
def test_the_exact_binomial_test_agrees_with_scipy(successes: int, trials: int) -> None:
    expected = stats.binomtest(successes, trials).pvalue if trials else 1.0
    assert binomial_two_sided(successes, trials) == pytest.approx(expected, rel=1e-9)


def test_folds_hold_equal_shares_of_each_class() -> None:
    data = drugs()
    fold = fold_of_rows(data, 10, seed=4)

    counts = np.zeros((10, 5))
    np.add.at(counts, (fold, np.asarray(data.target)), 1)

    assert np.all(counts.max(axis=0) - counts.min(axis=0) <= 1)
    assert np.all(np.bincount(fold) == 20)


def test_a_difference_over_folds_is_tested_by_the_corrected_t_test() -> None:
    comparison = compare(drugs(), stump_and_tree(), folds=10, seed=1)

    stump, tree = (
        np.array([fold.accuracy for fold in result.evaluations], dtype=float) for result in comparison.results
    )
    gaps = tree - stump
    # Nadeau and Bengio (2003): the variance of the mean is (1/k + n_test/n_train) times that of the differences.
    statistic = gaps.mean() / np.sqrt(gaps.var(ddof=1) * (1 / 10 + 20 / 180))
    difference = comparison.differences[0]
    assert (difference.better, difference.other) == ("tree", "stump")
    assert difference.by == pytest.approx(gaps.mean())
    assert difference.p_value == pytest.approx(2 * stats.t.sf(statistic, 9), rel=1e-9)
    assert difference.means_something
    assert comparison.verdict.startswith("tree has the best accuracy")


def test_a_difference_on_one_split_is_tested_by_mcnemar() -> None:
    comparison = compare(drugs(), stump_and_tree(), holdout=espalier.Holdout(fraction=0.3, seed=2))

    stump, tree = (result.misses for result in comparison.results)
    only_tree, only_stump = int(np.sum((tree == 0) & (stump == 1))), int(np.sum((tree == 1) & (stump == 0)))
    assert comparison.differences[0].p_value == pytest.approx(
        stats.binomtest(only_stump, only_tree + only_stump).pvalue, rel=1e-9
    )
    assert comparison.n_folds == 1


def test_what_rounding_of_weights_leaves_is_no_difference_and_no_variance_is_no_certainty() -> None:
    one, other = 0.1 + 0.2, 0.3
    assert one != other
    assert resampled_t(paired_differences([one] * 5, [other] * 5), 0.25)[0] == 1.0
    # Of k folds that all say the same thing, by chance: 2 of the 2^k ways in which their signs can fall.
    for k in (2, 5):
        p_value, test = resampled_t(paired_differences([0.5] * k, [0.25] * k), 1 / (k - 1))
        assert (p_value, test.partition(" (")[0]) == (2 / 2**k, "sign test")


def test_the_unit_of_a_difference_does_not_change_its_p_value() -> None:
    apart = np.array([0.5, 0.25, -0.125, 0.75])
    expected = stats.ttest_1samp(apart, 0.0).pvalue
    for unit in (1.0, 2.0**-600, 2.0**600):
        assert resampled_t(apart * unit, 0.0)[0] == pytest.approx(expected)


def test_the_verdict_on_a_target_in_small_units_shows_the_figure() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal(60)
    rows = [{"x": float(value), "y": float(value) * 1e-7} for value in x]
    found = compare(espalier.dataset_from_rows(rows, target="y"), [Candidate("m5", espalier.training_config("m5"))])
    shown = found.verdict.partition("(")[2].rstrip(")")
    assert float(shown) == pytest.approx(found.results[0].score("rmse"), rel=1e-3)
    assert float(shown) > 0


def test_a_pruned_candidate_stands_beside_the_same_one_unpruned() -> None:
    candidates = [
        Candidate("unpruned", espalier.training_config("cart")),
        Candidate("other", espalier.training_config("cart", min_weight_leaf=3)),
        Candidate("pruned", espalier.training_config("cart", pruning={"method": "reduced_error"})),
    ]
    comparison = compare(drugs(), candidates, folds=5, seed=1, label_noise=0.3)

    (effect,) = comparison.pruning_effects
    unpruned, _, pruned = comparison.results
    gaps = np.array([one.accuracy for one in pruned.evaluations]) - np.array(
        [one.accuracy for one in unpruned.evaluations]
    )
    statistic = gaps.mean() / np.sqrt(gaps.var(ddof=1) * (1 / 5 + 40 / 160))
    assert (effect.pruned, effect.unpruned) == ("pruned", "unpruned")
    assert effect.gain == pytest.approx(gaps.mean())
    assert effect.p_value == pytest.approx(2 * stats.t.sf(abs(statistic), 4), rel=1e-9)
    assert effect.leaves_kept == pytest.approx(np.mean(pruned.leaves) / np.mean(unpruned.leaves))
    assert comparison.to_dict()["pruning_effects"][0]["verdict"] == effect.verdict


def test_a_gain_of_a_regression_is_an_error_that_fell() -> None:
    generator = np.random.default_rng(3)
    rows = [{"x": x, "y": x + noise} for x, noise in enumerate(generator.normal(scale=30.0, size=80).tolist())]
    candidates = [
        Candidate("unpruned", espalier.training_config("cart")),
        Candidate("root", espalier.training_config("cart", pruning={"method": "cost_complexity", "alpha": 20.0})),
    ]
    comparison = compare(espalier.dataset_from_rows(rows, target="y"), candidates, folds=4)

    unpruned, root = (result.score("rmse") for result in comparison.results)
    assert comparison.pruning_effects[0].gain == pytest.approx(unpruned - root)


@pytest.mark.parametrize(
    ("gain", "p_value", "verdict"), [(0.1, 0.01, "better"), (-0.1, 0.01, "worse"), (0.1, 0.05, "may be chance")]
)
def test_a_pruning_helps_or_harms_only_where_chance_would_not(gain: float, p_value: float, verdict: str) -> None:
    assert PruningEffect("pruned", "unpruned", gain, p_value, "", 0.5).verdict == verdict


def test_rules_are_compared_by_their_number() -> None:
    rules = Candidate("rules", espalier.training_config("cart", pruning={"method": "rules"}))

    (result,) = compare(drugs(), [rules], folds=2).results

    models = [
        espalier.train(
            drugs().take(np.flatnonzero(fold_of_rows(drugs(), 2) != fold)), rules.config, holdout=rules.holdout
        )
        for fold in range(2)
    ]
    assert result.leaves == tuple(model.rules.n_rules for model in models)


@pytest.mark.parametrize(
    ("names", "as_good"), [(("one", "two"), ", as has two"), (("one", "two", "three"), ", as two, three have")]
)
def test_a_candidate_beside_itself_is_as_good(names: tuple[str, ...], as_good: str) -> None:
    comparison = compare(drugs(), [Candidate(name, espalier.training_config("cart")) for name in names], folds=5)

    assert comparison.differences[0].p_value == 1.0
    assert comparison.verdict.startswith("one has the best accuracy (")
    assert comparison.verdict.endswith(f"){as_good}")


def test_a_pruned_candidate_is_pruned_inside_each_fold() -> None:
    pruned = Candidate("pruned", espalier.training_config("cart", pruning={"method": "reduced_error"}))

    comparison = compare(drugs(), [Candidate("plain", espalier.training_config("cart")), pruned], folds=5)

    document = comparison.to_dict()
    assert [entry["name"] for entry in document["candidates"]] == ["plain", "pruned"]
    assert document["candidates"][1]["config"]["pruning"]["method"] == "reduced_error"
    assert all(leaves >= 5 for leaves in comparison.results[0].leaves)  # five classes need five leaves


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"folds": 1}, "/folds"),
        ({"folds": 201}, "/folds"),
        ({"folds": [0] * 200}, "/folds"),
        ({"folds": 5, "holdout": espalier.Holdout(fraction=0.5)}, "/folds"),
    ],
)
def test_folds_that_are_not_legal_are_refused_by_path(asked: dict[str, object], path: str) -> None:
    with pytest.raises(espalier.ConfigError) as refused:
        compare(drugs(), stump_and_tree(), **asked)  # type: ignore[arg-type]

    assert refused.value.faults[0].path == path


def test_two_candidates_of_one_name_are_refused() -> None:
    with pytest.raises(espalier.ConfigError, match="its own name; 'stump' stands there more than once"):
        compare(drugs(), stump_and_tree()[:1] * 2, folds=5)


def test_label_noise_changes_the_classes_of_the_asked_share_of_rows_only() -> None:
    data = drugs()

    noisy = with_label_noise(data, 0.2, seed=3)

    changed = np.asarray(noisy.target) != np.asarray(data.target)
    assert changed.sum() == 40
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(noisy.attributes, data.attributes, strict=True))


def test_noise_is_never_in_the_rows_that_are_tested_on() -> None:
    # One attribute tells the class; with noise in training only, a tree of two leaves still finds every test row.
    rows = [{"x": row % 2, "y": "ab"[row % 2]} for row in range(200)]
    data = espalier.dataset_from_rows(rows, target="y")
    stump = Candidate("stump", espalier.training_config("cart", max_depth=1))

    comparison = compare(data, [stump], folds=10, label_noise=0.2)

    assert comparison.results[0].score("accuracy") == 1.0


def test_a_candidate_of_rules_has_as_many_leaves_as_rules() -> None:
    rules = Candidate("rules", espalier.training_config("cart", pruning={"method": "rules"}))

    result = compare(drugs(), [rules], holdout=espalier.Holdout(fraction=0.3, seed=2)).results[0]

    kept = drugs().take(np.setdiff1d(np.arange(200), espalier.held_out_rows(espalier.Holdout(0.3, 2), drugs())))
    model = espalier.train(kept, rules.config, holdout=rules.holdout)
    assert result.leaves == (len(model.rules.rules),)


def test_every_fault_of_every_candidate_is_said_at_once() -> None:
    numbers = espalier.training_config("cart", criterion="squared_error")

    with pytest.raises(espalier.ConfigError) as refused:
        compare(drugs(), [Candidate("a", numbers), stump_and_tree()[0], Candidate("b", numbers)])

    assert [fault.path for fault in refused.value.faults] == ["/candidates/0/criterion", "/candidates/2/criterion"]


def test_what_is_wrong_with_the_data_is_said_once_for_all_candidates() -> None:
    data = espalier.dataset_from_rows([{"x": x, "y": "a"} for x in range(30)], target="y")
    numbers = espalier.training_config("cart", criterion="squared_error")

    with pytest.raises(espalier.ConfigError) as refused:
        compare(data, [*stump_and_tree(), Candidate("numbers", numbers)])

    assert [fault.path for fault in refused.value.faults] == ["/target", "/candidates/2/criterion"]


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

    for result, asked in zip(found.results, ("the tree asks", "the rules ask"), strict=True):
        assert result.notes == (
            "2 rows have a category that the model has not seen: it counts as missing",
            f"1 row has no value of any attribute that {asked} for",
        )


def test_rows_to_test_on_that_have_no_weights_are_told_of() -> None:
    tested = espalier.dataset_from_rows([{"a": 1, "y": "y"}, {"a": 2, "y": "n"}], target="y")

    found = compare(weighted([1, 2, 3, 1, 2, 3]), stump_and_tree(), holdout=tested)

    assert all(
        result.notes == ("the rows have no weights ('w' is not there): each counts 1",) for result in found.results
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


def test_progress_only_grows_and_ends_with_the_last_training() -> None:
    seen: list[float] = []

    class Watched(espalier.Progress):
        def part(self, start: float, end: float) -> espalier.Progress:
            seen.append(self.share)
            return super().part(start, end)

    compare(drugs(), stump_and_tree(), folds=4, progress=Watched())

    # Two candidates of four folds: each training begins where the one before it ended.
    assert seen == sorted(seen)
    assert all(share <= place / 8 for place, share in enumerate(seen))


def test_a_stop_reaches_the_training_that_runs() -> None:
    whole = espalier.Progress()
    first, second = whole.part(0.0, 0.5), whole.part(0.5, 1.0)

    whole.stop()

    with pytest.raises(espalier.Cancelled):
        second.check()
    first.check()  # it is over: nobody looks at it
    with pytest.raises(espalier.Cancelled):
        whole.part(0.0, 1.0).check()


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_noise_that_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(espalier.ConfigError, match="label_noise"):
        compare(drugs(), stump_and_tree(), label_noise=share)


def weighted(weights: list[int]) -> espalier.Dataset:
    lines = [f"{place},{'yn'[place % 2]},{weight}" for place, weight in enumerate(weights)]
    return espalier.dataset_from_csv("a,y,w\n" + "\n".join(lines) + "\n", target="y", weight="w")


def test_a_heavy_row_is_one_row_when_a_difference_is_tested() -> None:
    """One row of weight 100 speaks for the stump, twelve of weight 1 for the tree: the stump's lead may be chance."""
    rows = [{"x": x, "y": "ab"[x >= 20], "w": 1.0} for x in range(40)]
    # Between 30 and 34 the training rows are of the other class; of the rows to test on only the heavy one is not.
    rows = [row | {"y": "a"} if 30 <= row["x"] < 34 else row for row in rows]
    tested = [{"x": 30.0 + place / 4, "y": "a", "w": 1.0} for place in range(12)] + [{"x": 33, "y": "b", "w": 100.0}]
    data = espalier.dataset_from_rows(rows, target="y", weight="w")
    other = espalier.dataset_from_rows(tested, target="y", weight="w")
    comparison = compare(data, stump_and_tree(), holdout=other)

    (difference,) = comparison.differences
    assert (difference.better, difference.other) == ("stump", "tree")
    assert difference.by == pytest.approx((100 - 12) / 112)
    gains = np.array([-1.0] * 12 + [100.0])
    assert difference.p_value == pytest.approx(stats.ttest_1samp(gains, 0.0).pvalue)
    assert difference.test == "paired t-test (Student 1908) of the weighted errors"
    assert not difference.means_something


def test_a_weight_that_all_rows_share_changes_no_test() -> None:
    rows = [{"x": x * 7 % 40, "y": "ab"[(x * 7 % 40 > 12) ^ (x % 6 == 0)], "w": 1.0} for x in range(80)]
    split = espalier.Holdout(fraction=0.5, seed=2)
    light, heavy = (
        compare(
            espalier.dataset_from_rows([row | {"w": weight} for row in rows], target="y", weight="w"),
            stump_and_tree(),
            holdout=split,
        ).differences
        for weight in (1.0, 8.0)
    )
    assert light == heavy
    assert light[0].test == "McNemar's exact test (1947)"


@pytest.mark.parametrize(
    ("weights", "asked", "path", "what"),
    [
        pytest.param([1, 1, 0, 0, 1, 1], {"folds": [0, 0, 1, 1, 2, 2]}, "/folds", "fold 2 of 3", id="a fold"),
        pytest.param([0, 0, 1, 1], {"folds": [0, 0, 1, 1]}, "/folds", "fold 1 of 2", id="the first fold"),
        pytest.param([1, 1, 0, 0], {"folds": [0, 0, 1, 1]}, "/folds", "beside fold 1 of 2", id="the rest"),
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
