import numpy as np
import pytest
from scipy import stats

import espalier
from espalier.data.stratified_folds import fold_of_rows
from espalier.model_selection.candidates import Candidate
from espalier.model_selection.compare import PruningEffect, compare, paired_differences, resampled_t
from espalier.model_selection.folds_and_label_noise import with_label_noise
from espalier.stats import binomial_two_sided, student_t_two_sided
from tests.core.compared import drugs, stump_and_tree


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
    assert difference.significant
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


def test_an_infinite_error_is_no_tie_and_no_evidence() -> None:
    """In one fold, squared errors times weights overflow: nothing follows from the other folds about this one."""
    apart = paired_differences([np.inf, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert apart.tolist() == [np.inf, 0.0, 0.0]
    assert resampled_t(apart, 0.25)[0] == 1.0


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


@pytest.mark.parametrize("seed", [27, 45])
def test_as_many_errors_on_other_folds_are_as_good_and_the_smaller_tree_is_named_first(seed: int) -> None:
    """The means of the same accuracies differ by rounding, depending on the folds that they are of."""
    draw = np.random.default_rng(seed)
    columns = zip(draw.integers(0, 10, 60).tolist(), draw.integers(0, 10, 60).tolist(), draw.random(60), strict=True)
    rows = [{"x": x, "z": z, "y": "ab"[(x > 4) ^ bool(noise < 0.25)]} for x, z, noise in columns]
    depths = {27: (6, 1), 45: (6, 3)}[seed]
    candidates = [Candidate(f"depth {each}", espalier.training_config("cart", max_depth=each)) for each in depths]
    comparison = compare(espalier.dataset_from_rows(rows, target="y"), candidates)
    deep, small = comparison.results
    errors = [[each.errors for each in result.evaluations] for result in comparison.results]
    assert sum(errors[0]) == sum(errors[1])
    assert errors[0] != errors[1]  # each fold has six rows
    assert sum(small.leaves) < sum(deep.leaves)
    (difference,) = comparison.differences
    assert (difference.better, difference.by, difference.p_value) == (small.candidate.name, 0.0, 1.0)
    assert comparison.verdict.endswith(f", as has {deep.candidate.name}")


def test_the_confusion_of_all_folds_is_kept_once() -> None:
    comparison = compare(drugs(), stump_and_tree(), folds=5)
    for result, shown in zip(comparison.results, comparison.to_dict()["candidates"], strict=True):
        assert [each.confusion for each in result.evaluations] == [None] * 5  # with 1,000 classes, 39 MB each
        whole = np.array(shown["confusion"])
        assert whole.sum() == 200
        assert whole.sum() - np.trace(whole) == sum(each.errors for each in result.evaluations)
        assert whole.sum(axis=1).tolist() == np.bincount(drugs().target).tolist()


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


def test_folds_may_have_any_whole_numbers() -> None:
    small, large = ([number * (row % 2) for row in range(200)] for number in (1, 10**30))
    results = [compare(drugs(), stump_and_tree(), folds=folds).results for folds in (small, large)]
    found = [[one.score("accuracy") for one in each] for each in results]
    assert found[0] == found[1]


def test_two_candidates_of_one_name_are_refused() -> None:
    with pytest.raises(espalier.ConfigError, match="its own name; 'stump' is given more than once"):
        compare(drugs(), stump_and_tree()[:1] * 2, folds=5)


def test_label_noise_changes_the_classes_of_the_asked_share_of_rows_only() -> None:
    data = drugs()

    noisy = with_label_noise(data, 0.2, seed=3)

    changed = np.asarray(noisy.target) != np.asarray(data.target)
    assert changed.sum() == 40
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(noisy.attributes, data.attributes, strict=True))


def test_noise_falls_on_rows_inside_and_outside_a_holdout_of_the_same_seed() -> None:
    data = espalier.dataset_from_rows([{"x": float(row), "y": "ab"[row % 2]} for row in range(600)], target="y")
    noisy = np.flatnonzero(with_label_noise(data, 0.3).columns[1] != data.columns[1])
    n_inside = len(np.intersect1d(noisy, espalier.held_out_rows(espalier.Holdout(fraction=0.3), data)))
    assert len(noisy) == 180
    assert 30 < n_inside < 80  # 54 are expected: 180 of 600 rows have noise, and 180 are in the holdout


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
    assert not difference.significant


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


def test_the_name_of_a_preset_is_a_candidate() -> None:
    names = ["cart", "c45"]
    named = compare(drugs(), names, folds=3)
    configured = compare(drugs(), [Candidate(name, espalier.training_config(name)) for name in names], folds=3)

    assert named.differences == configured.differences
    assert [result.candidate for result in named.results] == [result.candidate for result in configured.results]
    with pytest.raises(espalier.ConfigError) as refused:
        compare(drugs(), ["cart", "carts"], folds=3)
    assert [fault.path for fault in refused.value.faults] == ["/candidates/1/preset"]
