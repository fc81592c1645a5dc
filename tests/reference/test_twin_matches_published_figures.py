"""The twin against every figure of the reference folder that it can compute.

Each test walks all files and entries: a new data set with its figures is tested without new code. Entries of systems
that the twin is not (pruning, rule learners, smoothing) are left out, by what their command line says.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from tests.factories import REFERENCE, needs_reference
from tests.reference import candidates, published, replay, rpart_text, scores, splits, tree, weka_text
from tests.reference.replay import Experiment, agrees_unless_tied, n_wrong
from tests.reference.table import Table, read_table

pytestmark = needs_reference

Entry = dict[str, Any]
MOST_ROWS = 2000


def figures(system: str) -> Iterator[tuple[str, Entry]]:
    for path in sorted((REFERENCE / "expected" / system).glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        yield document["dataset"], document


@cache
def read_experiment(name: str) -> Experiment:
    return replay.read_splits(REFERENCE, read_table(REFERENCE, name), name)


def experiment(name: str) -> Experiment:
    split = read_experiment(name)
    if split.table.n_rows > MOST_ROWS:
        pytest.skip(f"{split.table.n_rows} rows are too many for the twin")
    return split


def kind_of(name: str) -> str:
    """The kind of a data set's target."""
    return read_experiment(name).table.target.kind


Applies = Callable[[str, Entry], bool]


def weka_entries(applies: Applies) -> list[Any]:
    return [
        pytest.param(name, entry, id=f"{name}-{system}-{label}")
        for name, document in figures("weka")
        for system, entries in document.items()
        if isinstance(entries, dict)
        for label, entry in entries.items()
        if applies(name, entry)
    ]


def is_grown(name: str, entry: Entry) -> bool:
    """Whether the twin can grow the tree of a Weka command: it neither prunes nor smooths, and grows no rules."""
    return isinstance(published.weka_config(entry["command"], kind_of(name)), dict)


def has_holdout(name: str, entry: Entry) -> bool:
    """Whether hold-out rows are listed, and figures of them."""
    return bool(read_experiment(name).test_rows) and "holdout" in entry


def is_grown_with_holdout(name: str, entry: Entry) -> bool:
    return is_grown(name, entry) and has_holdout(name, entry)


def is_grown_with_distributions(name: str, entry: Entry) -> bool:
    return is_grown_with_holdout(name, entry) and "distribution" in entry["holdout"]


def has_folds(name: str, entry: Entry) -> bool:
    """Whether ten folds are listed, and figures of them."""
    return bool(read_experiment(name).folds) and "cv10_seed1" in entry


def is_grown_with_folds(name: str, entry: Entry) -> bool:
    return is_grown(name, entry) and has_folds(name, entry)


def c45_entries(applies: Callable[[str, str, Entry], bool]) -> list[Any]:
    return [
        pytest.param(name, part, entry, id=f"{name}-{part}-{label}")
        for name, document in figures("c45r8")
        for part in ("all_rows", "holdout")
        for label, entry in document.get(part, {}).items()
        if applies(name, part, entry)
    ]


def is_c45_part(name: str, part: str, entry: Entry) -> bool:
    """Whether an entry is of a tree, and its rows are listed."""
    rows_are_listed = part == "all_rows" or bool(read_experiment(name).test_rows)
    return isinstance(published.c45_config(entry["command"]), dict) and rows_are_listed


def is_grown_by_c45(name: str, part: str, entry: Entry) -> bool:
    """Labor's trees differ from J48's before pruning (README of the reference folder)."""
    return name != "labor" and is_c45_part(name, part, entry)


def sklearn_entries(applies: Applies) -> list[Any]:
    return [
        pytest.param(name, entry, id=f"{name}-{encoding}-{label}")
        for name, document in figures("sklearn")
        for encoding in ("as_is", "onehot")
        for label, entry in document.get(encoding, {}).items()
        if isinstance(entry, dict) and applies(name, entry)
    ]


def is_grown_by_sklearn(name: str, entry: Entry) -> bool:
    return isinstance(published.sklearn_config(entry["params"], kind_of(name)), dict)


def is_grown_by_sklearn_with_holdout(name: str, entry: Entry) -> bool:
    return is_grown_by_sklearn(name, entry) and has_holdout(name, entry)


def rpart_entries(applies: Applies) -> list[Any]:
    return [
        pytest.param(name, entry, id=f"{name}-{label}")
        for name, document in figures("rpart")
        for label, entry in document.items()
        if isinstance(entry, dict) and "control" in entry and applies(name, entry)
    ]


def is_grown_by_rpart(name: str, entry: Entry) -> bool:
    return isinstance(published.rpart_config(entry["control"], entry["split"], kind_of(name)), dict)


def is_unpruned_by_rpart(name: str, entry: Entry) -> bool:
    return is_grown_by_rpart(name, entry) and (entry["control"] or {}).get("cp") == 0


def is_unpruned_by_rpart_with_holdout(name: str, entry: Entry) -> bool:
    return is_unpruned_by_rpart(name, entry) and has_holdout(name, entry)


def lists_candidates_of_rpart(name: str, entry: Entry) -> bool:
    return is_grown_by_rpart(name, entry) and "root_splits" in entry


@pytest.mark.parametrize(("name", "entry"), weka_entries(is_grown))
def test_the_tree_that_weka_prints_for_all_rows_is_grown_line_by_line(name: str, entry: Entry) -> None:
    table = experiment(name).table
    config = published.weka_config(entry["command"], table.target.kind)
    grown = replay.train(table, config).tree
    assert printed_lines(grown, table, entry["command"]) == lines_of(entry["tree"], entry["command"])
    assert weka_counts(entry) <= {tree.n_nodes(grown), tree.n_leaves(grown)}


@pytest.mark.parametrize(("name", "entry"), weka_entries(is_grown_with_holdout))
def test_the_tree_that_weka_prints_for_the_holdout_split_is_grown_line_by_line(name: str, entry: Entry) -> None:
    split, held = experiment(name), entry["holdout"]
    config = published.weka_config(entry["command"], split.table.target.kind)
    training = split.table.only(split.training_rows)
    grown = replay.train(training, config).tree
    ours, theirs = printed_lines(grown, training, entry["command"]), lines_of(held["tree"], entry["command"])
    whole = ours[: len(theirs)] if "cut here" in held["tree"] else ours
    assert whole == theirs
    assert weka_counts(held) <= {tree.n_nodes(grown), tree.n_leaves(grown)}


@pytest.mark.parametrize(("name", "entry"), weka_entries(is_grown))
def test_weka_s_errors_on_the_training_rows_are_ours(name: str, entry: Entry) -> None:
    split = experiment(name)
    config = published.weka_config(entry["command"], split.table.target.kind)
    everywhere = range(split.table.n_rows)
    given = replay.answers(split.table, everywhere, everywhere, config, as_weka_asks(entry))
    if split.table.target.kind == "class":
        assert n_wrong(given, split.truth(everywhere)) == entry["train"]["errors"]
        return
    for field, error in ERRORS.items():
        assert error(given, split.truth(everywhere)) == pytest.approx(entry["train"][field], rel=1e-9)


@pytest.mark.parametrize(("name", "entry"), weka_entries(is_grown_with_holdout))
def test_weka_s_answers_and_errors_on_the_holdout_rows_are_ours(name: str, entry: Entry) -> None:
    split, held = experiment(name), entry["holdout"]
    config = published.weka_config(entry["command"], split.table.target.kind)

    def given(table: Table) -> list[float]:
        return split.held_out(config, as_weka_asks(entry), table)

    if split.table.target.kind == "class":
        assert agrees_unless_tied(held["pred_idx"], given, split.table)
        return
    for field, error in ERRORS.items():
        ours = error_of(error, given, split.truth(split.test_rows))
        assert agrees_unless_tied(held[field], ours, split.table), field


@pytest.mark.parametrize(("name", "entry"), weka_entries(is_grown_with_folds))
def test_weka_s_errors_on_the_ten_folds_are_ours(name: str, entry: Entry) -> None:
    split, figures = experiment(name), entry["cv10_seed1"]
    config = published.weka_config(entry["command"], split.table.target.kind)
    change = as_weka_asks(entry)
    if split.table.target.kind == "class":
        for fold, n_right in enumerate(figures["correct_per_fold"]):
            wrong = wrong_on_fold(split, fold, config, change)
            assert agrees_unless_tied(len(split.rows_of(fold)) - n_right, wrong, split.table), f"fold {fold}"
        return
    in_order = [row for fold in range(split.n_folds) for row in split.rows_of(fold)]

    def pooled(table: Table) -> list[float]:
        return [answer for fold in range(split.n_folds) for answer in split.on_fold(fold, config, change, table)]

    for field, error in ERRORS.items():
        ours = error_of(error, pooled, split.truth(in_order))
        assert agrees_unless_tied(figures[field], ours, split.table), field


@pytest.mark.parametrize(("name", "entry"), weka_entries(is_grown_with_distributions))
def test_the_class_distributions_that_weka_gives_for_holdout_rows_are_ours(name: str, entry: Entry) -> None:
    split, held = experiment(name), entry["holdout"]
    config = published.weka_config(entry["command"], split.table.target.kind)
    model = replay.train(split.table.only(split.training_rows), config)
    for row, shares in zip(split.test_rows, held["distribution"], strict=True):
        assert model.distribution(split.table.row(row)) == pytest.approx(shares, abs=1e-6)


@pytest.mark.parametrize(("name", "part", "entry"), c45_entries(is_grown_by_c45))
def test_c45_release_8_grows_a_tree_of_our_size_and_errors_before_it_prunes(name: str, part: str, entry: Entry) -> None:
    split = experiment(name)
    config = published.c45_config(entry["command"])
    rows = rows_of_part(split, part)
    model = replay.train(split.table.only(rows), config)
    assert tree.n_nodes(model.tree) == entry["train"]["size_before"]
    for label, asked in (("train", rows), ("test", split.test_rows)):
        if label in entry:
            given = [model.answer(split.table.row(row), "class") for row in asked]
            assert n_wrong(given, split.truth(asked)) == entry[label]["errors_before"], label


@pytest.mark.parametrize(("name", "entry"), sklearn_entries(is_grown_by_sklearn))
def test_scikit_learn_s_tree_of_all_rows_has_our_nodes_and_answers(name: str, entry: Entry) -> None:
    table = experiment(name).table
    config = published.sklearn_config(entry["params"], table.target.kind)
    model = replay.train(table, config)
    if entry["root"]["same_root_over_10_seeds"]:
        threshold = model.tree.threshold if model.tree.test == "numeric" else 0.5
        assert threshold == pytest.approx(entry["root"]["threshold"], rel=1e-6)
        sample = list(enumerate(table.weights))
        assert scores.impurity(config["criterion"], sample, table.target) == pytest.approx(
            entry["root"]["impurity"], rel=1e-9
        )
    if entry["tie_sensitive"]:  # its shape depends on scikit-learn's seed
        return
    ours = tree.n_nodes(model.tree), tree.n_leaves(model.tree), tree.depth(model.tree)
    assert ours == (entry["node_count"], entry["leaves"], entry["depth"])
    field, error = sklearn_figure(table)
    given = [model.answer(table.row(row), table.target.kind) for row in range(table.n_rows)]
    assert error(given, list(table.target.values)) == pytest.approx(entry[f"train_{field}"], rel=1e-9)


@pytest.mark.parametrize(("name", "entry"), sklearn_entries(is_grown_by_sklearn_with_holdout))
def test_scikit_learn_s_tree_of_the_holdout_split_has_our_nodes_and_answers(name: str, entry: Entry) -> None:
    split, held = experiment(name), entry["holdout"]
    config = published.sklearn_config(entry["params"], split.table.target.kind)
    model = replay.train(split.table.only(split.training_rows), config)
    if len(held["shapes_over_10_seeds_(nodes,depth)"]) == 1:
        assert [tree.n_nodes(model.tree), tree.depth(model.tree)] == [held["node_count"], held["depth"]]
    field, error = sklearn_figure(split.table)
    low, high = held[f"test_{field}_over_10_seeds"]
    if low == high:
        given = [model.answer(split.table.row(row), split.table.target.kind) for row in split.test_rows]
        assert error(given, split.truth(split.test_rows)) == pytest.approx(held[f"test_{field}"], rel=1e-9)


@pytest.mark.parametrize(("name", "entry"), rpart_entries(is_unpruned_by_rpart))
def test_rpart_s_unpruned_tree_is_ours_up_to_names_of_equal_partitions(name: str, entry: Entry) -> None:
    table = experiment(name).table
    config = published.rpart_config(entry["control"], entry["split"], table.target.kind)
    useful = rpart_text.without_useless_splits if table.target.kind == "class" else unchanged
    model = replay.train(table, config, useful)
    assert tree.n_leaves(model.tree) == entry["leaves"]
    if "print" in entry:
        assert rpart_text.differences(rpart_text.parse(entry["print"]), model.tree, table) == []


@pytest.mark.parametrize(("name", "entry"), rpart_entries(is_unpruned_by_rpart_with_holdout))
def test_rpart_s_unpruned_tree_of_the_holdout_split_makes_our_errors(name: str, entry: Entry) -> None:
    split, figures = experiment(name), entry["holdout"]
    kind = split.table.target.kind
    config = published.rpart_config(entry["control"], entry["split"], kind)
    useful = rpart_text.without_useless_splits if kind == "class" else unchanged
    field, error = ("errors", n_wrong) if kind == "class" else ("sse", replay.squared_error)

    def held(table: Table) -> list[float]:
        return split.held_out(config, lambda grown: replay.strictly_less(useful(grown)), table)

    ours = error_of(error, held, split.truth(split.test_rows))
    assert agrees_unless_tied(figures["test"][field], ours, split.table)


@pytest.mark.parametrize(("name", "entry"), rpart_entries(lists_candidates_of_rpart))
def test_rpart_s_candidates_at_the_root_have_our_gains_counts_and_cuts(name: str, entry: Entry) -> None:
    table = experiment(name).table
    config = published.rpart_config(entry["control"], entry["split"], table.target.kind)
    offers = root_offers(table, config)
    for printed in entry["root_splits"]:
        split = offers[printed["variable"]]
        assert split.gain * improvement_unit(table, entry["split"]) == pytest.approx(printed["improve"], rel=1e-9)
        assert sum(map(len, split.branches)) == printed["count"]
        if split.test == "numeric":
            assert split.threshold == pytest.approx(printed["index"], rel=1e-12)


@pytest.mark.parametrize(("name", "entry"), rpart_entries(is_unpruned_by_rpart))
def test_rpart_s_variable_importances_are_our_gains_and_surrogates(name: str, entry: Entry) -> None:
    split = experiment(name)
    config = published.rpart_config(entry["control"], entry["split"], split.table.target.kind)
    useful = rpart_text.without_useless_splits if split.table.target.kind == "class" else unchanged
    unit = math.log(2) if entry["split"] == "information" else 1.0

    def importances(table: Table) -> dict[str, float]:
        return rpart_text.importances(replay.train(table, config, useful).tree, table, unit)

    printed = {variable: float(value) for variable, value in (entry["variable_importance"] or {}).items()}
    assert agrees_unless_tied(printed, importances, split.table)


ERRORS: dict[str, Callable[..., float]] = {
    "rmse": replay.root_mean_squared_error,
    "mae": replay.mean_absolute_error,
}


def rows_of_part(split: Experiment, part: str) -> list[int]:
    """The rows that C4.5 was shown."""
    return list(range(split.table.n_rows)) if part == "all_rows" else split.training_rows


def as_weka_asks(entry: Entry) -> replay.Change:
    """What makes our tree send a value that equals a threshold where the system of the entry does."""
    return replay.strictly_less if "REPTree" in entry["command"] else unchanged


def wrong_on_fold(
    split: Experiment, fold: int, config: published.Config, change: replay.Change
) -> Callable[[Table], int]:
    """The wrong answers on a fold, as a function of the order of the columns."""
    truth = split.truth(split.rows_of(fold))
    return lambda table: n_wrong(split.on_fold(fold, config, change, table), truth)


def error_of(
    error: Callable[..., float], given: Callable[[Table], list[float]], truth: list[float]
) -> Callable[[Table], float]:
    """An error figure as a function of the order of the columns."""
    return lambda table: error(given(table), truth)


def unchanged(grown: tree.Node) -> tree.Node:
    return grown


def weka_counts(entry: Entry) -> set[int]:
    """Nodes and leaves as far as the entry has them; M5 counts a rule a leaf."""
    return {entry[field] for field in ("measureTreeSize", "measureNumLeaves", "measureNumRules") if field in entry}


def printed_lines(grown: tree.Node, table: Table, command: str) -> list[str]:
    """Our tree in Weka's form."""
    if "J48" in command:
        return weka_text.j48_text(grown, table).splitlines()
    if "REPTree" in command:
        return weka_text.reptree_text(grown, table).splitlines()
    deviation = math.sqrt(scores.variance(list(enumerate(table.weights)), table.target))
    return normal(weka_text.m5_text(grown, table, root_deviation=deviation).splitlines())


def lines_of(text: str, command: str) -> list[str]:
    """The lines of a printed tree, without heading, counts and linear models."""
    if "M5P" not in command:
        return weka_text.printed_body(text).splitlines()
    kept = re.split(r"LM num|\.\.\. \(", text, maxsplit=1)[0].splitlines()
    lines = [line.rstrip() for line in kept[1:] if line.strip()]
    return normal(lines[: -1 if "cut here" in text else None])


def normal(lines: list[str]) -> list[str]:
    """M5's lines with the categories of a binary column in alphabetical order."""

    def in_order(found: re.Match[str]) -> str:
        return f"{found[1]}={','.join(sorted(found[2].split(',')))}{found[3]}"

    return [re.sub(r"^(.*?)=(\S+)( (?:<=|> ) .*)$", in_order, line.rstrip()) for line in lines]


def sklearn_figure(table: Table) -> tuple[str, Callable[..., float]]:
    if table.target.kind == "number":
        return "rmse", replay.root_mean_squared_error
    return "accuracy", lambda given, truth: 1 - n_wrong(given, truth) / len(truth)


def root_offers(table: Table, config: published.Config) -> dict[str, splits.Split]:
    """The best split of each attribute at the root, by its name in R."""
    sample = list(enumerate(table.weights))
    place = splits.Place(sample, scores.impurity(config["criterion"], sample, table.target), frozenset())
    offers = {}
    for source, column in enumerate(table.columns):
        attribute = candidates.Attribute(source, column.kind, column.values, column.k)
        split = splits.best_split(attribute, place, table.target, config)
        if split is not None:
            offers[rpart_text.name_in_r(column.name)] = split
    return offers


def improvement_unit(table: Table, split: str) -> float:
    """What rpart multiplies a mean decrease by: the rows, in nats for information, over the root's risk for anova."""
    sample = list(enumerate(table.weights))
    if split == "anova":
        return 1 / scores.variance(sample, table.target)
    return scores.total(sample) * (math.log(2) if split == "information" else 1)
