"""The slow twin of model trees against every published M5P figure: trees, linear models, hold-out rows, ten folds."""

import functools
import math
import re
from dataclasses import dataclass

import pytest

from tests.factories import REFERENCE, needs_reference
from tests.reference import missing, model_tree
from tests.reference.grower import grow_table, impute
from tests.reference.model_tree import Linear, ModelNode
from tests.reference.presets import preset
from tests.reference.replay import mean_absolute_error, root_mean_squared_error
from tests.reference.table import Table, read_table
from tests.reference.test_twin_matches_published_figures import experiment, has_folds, has_holdout, weka_entries


def is_m5p(name, entry):
    return "M5P" in entry["command"]


CASES = weka_entries(is_m5p)
HELD_OUT = [case for case in CASES if has_holdout(*case.values)]
PARTS = [pytest.param(*case.values, "train", id=f"{case.id}-train") for case in CASES]
PARTS += [pytest.param(*case.values, "holdout", id=f"{case.id}-holdout") for case in HELD_OUT]
FOLDED = [case for case in CASES if has_folds(*case.values)]
CUT = re.compile(r"\n?\.\.\. \(\d+ characters, cut here\)\n")
TERM = re.compile(r"([+-]?) ?(-?[\d.]+)(?: \* (.+?))?\s*$")

pytestmark = needs_reference


@dataclass(frozen=True)
class Asked:
    """A model tree with the table in which nothing is missing."""

    tree: ModelNode
    table: Table
    smoothing: float | None

    def answers(self, rows):
        return [model_tree.answer(self.tree, self.table.row(row), self.smoothing) for row in rows]

    def linear_models(self):
        if self.smoothing is not None:
            return model_tree.smoothed(self.tree, self.smoothing)
        return [leaf.own for leaf in model_tree.leaves(self.tree)]


@functools.cache
def table_of(name):
    return read_table(REFERENCE, name)


@functools.cache
def modelled(name, rows, linear, least):
    """The unpruned tree with its models, which four of the six commands share."""
    table = table_of(name)
    training = table.only(rows)
    filled = impute(table.columns, missing.imputed_values(training.columns, training.weights))
    complete = Table(filled, table.target, table.weights)
    tree = grow_table(training, preset("m5", "number", min_weight_split=least))
    return model_tree.with_models(tree, complete, [(row, 1.0) for row in rows], linear=linear), complete


def asked(name, entry, rows):
    options = entry["command"].split()
    least = float(options[options.index("-M") + 1]) if "-M" in options else 4.0
    tree, complete = modelled(name, tuple(rows), "-R" not in options, least)
    return Asked(tree if "-N" in options else model_tree.pruned(tree), complete, None if "-U" in options else 15.0)


def printed_models(text, table):
    """The linear models as printed, by number: {column: coefficient}, the intercept under None.

    A long text has a piece cut out of its middle; a model that the cut went through is left out.
    """
    found = {}
    for piece in CUT.split(text):
        for number, body in re.findall(r"LM num: (\d+)\n[^\n]+ = \n((?:\t.+\n)+)\n", piece):
            model = {}
            for line in map(str.strip, body.splitlines()):
                sign, size, column = TERM.match(line).groups()
                model[column and named_column(column, table)] = (-1 if sign == "-" else 1) * float(size)
            found[int(number)] = model
    return found


def named_column(text, table):
    name, _, categories = text.partition("=")
    place = table.named(name)
    if not categories:
        return place, None
    return place, frozenset(table.columns[place].categories.index(word) for word in categories.split(","))


def as_printed(model: Linear):
    return {None: model.intercept, **model.coefficients}


def agree(ours, theirs):
    """Equal to the four printed digits, where what is not printed is nothing."""
    zero = dict.fromkeys({*ours, *theirs}, 0.0)
    return {**zero, **ours} == pytest.approx({**zero, **theirs}, abs=5.1e-5)


@pytest.mark.parametrize(("name", "entry"), CASES)
def test_the_tree_is_the_published_one(name, entry):
    model = asked(name, entry, range(table_of(name).n_rows))
    assert len(model_tree.leaves(model.tree)) == entry["measureNumRules"]
    lines = [re.fullmatch(r".* : LM\d+ \((\d+)/[\d.]+%\)", line) for line in CUT.split(entry["tree"])[0].splitlines()]
    rows = [int(line[1]) for line in lines if line]
    assert rows
    assert [len(leaf.sample) for leaf in model_tree.leaves(model.tree)][: len(rows)] == rows


@pytest.mark.parametrize(("name", "entry", "on"), PARTS)
def test_every_linear_model_is_the_published_one_to_the_printed_digits(name, entry, on):
    if on == "train":
        text, rows = entry["tree"], range(table_of(name).n_rows)
    else:
        split, held = experiment(name), entry["holdout"]
        text, rows = held["tree"], split.training_rows
    model = asked(name, entry, rows)
    theirs = printed_models(text, table_of(name))
    ours = [as_printed(made) for made in model.linear_models()]
    assert theirs
    assert CUT.search(text) or set(theirs) == set(range(1, len(ours) + 1))
    assert [number for number, its in theirs.items() if not agree(ours[number - 1], its)] == []


@pytest.mark.parametrize(("name", "entry"), CASES)
def test_the_training_figures_are_the_published_ones(name, entry):
    rows = range(table_of(name).n_rows)
    figures, answers = entry["train"], asked(name, entry, rows).answers(rows)
    truth = [table_of(name).target.values[row] for row in rows]
    assert root_mean_squared_error(answers, truth) == pytest.approx(figures["rmse"], rel=1e-9)
    assert mean_absolute_error(answers, truth) == pytest.approx(figures["mae"], rel=1e-9)


@pytest.mark.parametrize(("name", "entry"), HELD_OUT)
def test_the_answers_for_the_held_out_rows_are_the_published_ones(name, entry):
    split, figures = experiment(name), entry["holdout"]
    answers = asked(name, entry, split.training_rows).answers(split.test_rows)
    assert all(math.isclose(mine, its, rel_tol=5.1e-6) for mine, its in zip(answers, figures["pred"], strict=True))
    assert root_mean_squared_error(answers, split.truth(split.test_rows)) == pytest.approx(figures["rmse"], rel=1e-9)


@pytest.mark.parametrize(("name", "entry"), FOLDED)
def test_the_figures_over_ten_folds_are_the_published_ones(name, entry):
    split, figures = experiment(name), entry["cv10_seed1"]
    pairs = []
    for fold in range(split.n_folds):
        rows = split.rows_of(fold)
        pairs += zip(asked(name, entry, split.rows_without(fold)).answers(rows), split.truth(rows), strict=True)
    answers, truth = zip(*pairs, strict=True)
    assert root_mean_squared_error(answers, truth) == pytest.approx(figures["rmse"], rel=1e-9)
