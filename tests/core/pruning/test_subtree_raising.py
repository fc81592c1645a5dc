"""Raised branches against Weka 3.6.14's own figures, on small tables made for it.

Each tree was printed by ``java -cp weka.jar weka.classifiers.trees.J48 -t rows.arff -no-cv`` with the rows below as
ARFF: an attribute a letter, the class last, ``?`` unknown.
"""

import math
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import Dataset, Feature, FeatureKind, Model, Pessimistic, Progress, Role, Schema, add_errs, prune, train
from espalier.data.labels import label_text
from espalier.errors import Cancelled
from espalier.model.node_tests import LEAF
from espalier.model.tree import Tree
from espalier.pruning.pessimistic import prune_pessimistic
from espalier.pruning.result import PruningRows
from tests.core.growing_bridge import node_of
from tests.core.pruning.test_twins import grown, noisy_table, same, twin_of
from tests.reference.pessimistic import Limit
from tests.reference.presets import preset
from tests.reference.table import Column, Table
from tests.reference.weka_text import java_double

UNKNOWN_SHARED_ANEW = """
    xyyyyn ?xy?xp xxxzzp ?xyyzp ??y?zn ?yxx?p y?yxzp yyxyzn xxxzyn xyxxxn xy??yp xxx?xp yxxzyn yx??xn yyxy?n
    x?xzxp yxyzyn yxy?zn xyyzzp yyx?zn yyyyyp ??y?zn x?xxzp yyxzyn yxyyyp xyxzyp yxyyyp xx?yxn y?xxyp xy?yyn
    yyxz?n xyyy?n xxxyyp yxxzyp xy??xn yxxzyp yxxzzn xxyxyn yyyxzn xyxyxn xy?y?n yx?yyp ?xyyyp yxxx?p xxxyxn
    xxxyxn xxyzzn yy?xyp xyxx?n y?yzyn
"""
"""With shares as they were before its branch took a node's place the tree has four leaves."""
ITS_TREE = """
a4 = x: n (11.63/3.47)
a4 = y
|   a0 = x: n (8.96/3.56)
|   a0 = y
|   |   a3 = x: p (2.75)
|   |   a3 = y: p (5.08/0.47)
|   |   a3 = z: n (6.47/2.0)
a4 = z: n (15.12/5.6)
"""

EMPTY_LEAF = """
    uvxvzq zzxzvq vyvzvq uvzzzq yxvyxn yzvxzq zvvzvn xyuvun yvzzup zuyuvp yxxzxp xyzzvn xzzvyp uxvzup xuxvyn
    xuxvyp zvxxxp uuxvvp yvuxuq zuvvuq vyzvyq xyxyzn zzzvvq uvvvuq yuyvup yxvzvq zyvyxp xuzzxp zzuxun vyyuvp
    xuxvzn yuxuzn xuxxyp xyyxxp zyuxyn uzyvxp zxvuzp zyuxxn zvyxvn zuzyyp
"""
"""No row has a2 = x and a4 = u. Where the branch grew most rows are n, where it is put p."""
ITS_OTHER_TREE = """
a2 = u: n (5.0/1.0)
a2 = v: q (10.0/5.0)
a2 = x
|   a4 = u: p (0.0)
|   a4 = v: p (2.0/1.0)
|   a4 = x: p (2.0)
|   a4 = y: p (3.0/1.0)
|   a4 = z: n (4.0/1.0)
a2 = y: p (6.0/1.0)
a2 = z: p (8.0/4.0)
"""

EQUALLY_HEAVY = """
    xyzq yyzp ?yzp y?yq x?xq ??zp yzyp ??xp xxyn ??xn xx?n y?zn xzxq ??yp yz?n xxyq
"""
"""The branches of a1 weigh 16/3 each, but for rounding; 3.6.14 and 3.9.7 raise the last (``-M 1 -C 0.4``)."""


def data_of(text: str, letters: str, classes: str) -> Dataset:
    features = [
        Feature(f"a{place}", FeatureKind.NOMINAL, Role.ATTRIBUTE, tuple(own))
        for place, own in enumerate(letters.split())
    ]
    features.append(Feature("class", FeatureKind.NOMINAL, Role.TARGET, tuple(classes)))
    columns = zip(*text.split(), strict=True)
    return Dataset(
        Schema(tuple(features)),
        tuple(
            np.array([feature.categories.index(letter) if letter != "?" else -1 for letter in column], np.int32)
            for feature, column in zip(features, columns, strict=True)
        ),
    )


def printed(model: Model, node: int = 0, indent: str = "") -> Iterator[str]:
    """The lines of a tree of categories as J48 prints them."""
    tree = model.tree
    attribute = model.schema.attributes[tree.feature[node]]
    for category, child in zip(attribute.categories, tree.children(node), strict=True):
        line = f"{indent}{attribute.name} = {label_text(category)}"
        if tree.test[child] != LEAF:
            yield line
            yield from printed(model, child, indent + "|   ")
            continue
        wrong = tree.stats[child].sum() - tree.stats[child][int(tree.value[child])]
        counts = java_double(float(tree.weight[child])) + (f"/{java_double(float(wrong))}" if wrong > 1e-6 else "")
        yield f"{line}: {label_text(model.schema.classes[int(tree.value[child])])} ({counts})"


@pytest.mark.parametrize(
    ("rows", "letters", "classes", "tree"),
    [(UNKNOWN_SHARED_ANEW, "xy xy xy xyz xyz", "np", ITS_TREE), (EMPTY_LEAF, "uvxyz " * 5, "npq", ITS_OTHER_TREE)],
    ids=["shares", "empty leaf"],
)
def test_a_tree_with_branches_to_raise_is_weka_s_line_by_line(rows: str, letters: str, classes: str, tree: str) -> None:
    model = train(data_of(rows, letters, classes), "j48")
    assert list(printed(model)) == tree.strip().splitlines()


def test_of_branches_that_weigh_the_same_but_for_rounding_the_last_is_raised() -> None:
    data = data_of(EQUALLY_HEAVY, "xy xyz xyzu", "npq")
    model = train(data, "j48", min_weight_leaf=1, pruning={"confidence": 0.4})
    assert list(printed(model)) == ["a0 = x: q (8.73/4.73)", "a0 = y: p (7.27/3.45)"]


@pytest.mark.parametrize("missing", ["fractional", "direction"])
def test_a_branch_rejected_before_all_rows_were_tried_is_one_that_the_slow_twin_does_not_raise(
    missing: str,
) -> None:
    table = noisy_table(11, n_rows=1200, holes=0.03)
    dataset, model = grown(table, preset("id3", numeric="best", missing=missing))
    result = prune(model, "pessimistic", dataset=dataset)
    same(node_of(result.model.tree, 0), twin_of(model, table, Limit(0.25), raising=True))


def test_pruning_that_is_stopped_raises_and_returns_no_half_pruned_tree() -> None:
    dataset, model = grown(noisy_table(7, n_rows=900, holes=0.04), preset("id3", numeric="best", missing="fractional"))

    def pruned(progress: Progress) -> Tree:
        return prune(model, "pessimistic", dataset=dataset, progress=progress).model.tree

    pruned(Progress())
    began = time.perf_counter()
    expected, lasted = pruned(Progress()), time.perf_counter() - began
    for part in range(60):
        progress = Progress()
        alarm = threading.Timer(lasted * part / 60, progress.stop)
        alarm.start()
        try:
            assert pruned(progress) == expected
        except Cancelled:
            pass
        finally:
            alarm.cancel()
            alarm.join()


@pytest.mark.parametrize("seed", [2, 5, 11])
def test_the_order_of_the_rows_changes_no_step_and_no_tree(seed: int) -> None:
    # Weights that are powers of two, and none divided: their sums are exact in any order.
    dataset, model = grown(noisy_table(seed, n_rows=900, holes=0.0), preset("id3", numeric="best"))
    expected = prune(model, "pessimistic", dataset=dataset)
    steps = expected.trace["steps"]
    assert any(step["raised"] is not None for step in steps), "no branch is raised"
    assert len(steps) < (model.tree.test != LEAF).sum(), "no branch stays"
    target = np.asarray(dataset.target)
    orders = (np.arange(900)[::-1], np.argsort(target), np.argsort(-target), np.random.default_rng(1).permutation(900))
    for order in orders:
        found = prune_pessimistic(model, Pessimistic(0.25), PruningRows(dataset.take(order)), Progress())
        assert found.model.tree == expected.model.tree
        for ours, other in zip(found.trace["steps"], steps, strict=True):
            # Estimates are added up leaf by leaf, in the order in which rows reach them.
            assert ours == {name: pytest.approx(value, rel=1e-12) if type(value) is float else value
                            for name, value in other.items()}  # fmt: skip


@pytest.mark.parametrize("missing", ["fractional", "direction"])
def test_branches_raised_near_the_root_are_those_that_the_slow_twin_raises(missing: str) -> None:
    n_raised_above = 0
    for seed in range(12):
        table = noisy_table(seed, n_rows=500, holes=0.02)
        dataset, model = grown(table, preset("id3", numeric="best", missing=missing))
        result = prune(model, "pessimistic", dataset=dataset)
        same(node_of(result.model.tree, 0), twin_of(model, table, Limit(0.25), raising=True))
        raised = [step for step in result.trace["steps"] if step["raised"] is not None]
        n_raised_above += sum(step["weight"] > 50 for step in raised)
    assert n_raised_above > 0


@pytest.mark.parametrize(("n_rows", "seed"), [(160, 49), (160, 57), (500, 17), (900, 15)])
def test_a_branch_is_tried_after_what_is_below_it_has_changed(n_rows: int, seed: int) -> None:
    # In these a branch near the root is raised that would stay if the nodes below it were as they were grown.
    table = noisy_table(seed, n_rows=n_rows, holes=0.0)
    dataset, model = grown(table, preset("id3", numeric="best"))
    result = prune(model, "pessimistic", dataset=dataset)
    same(node_of(result.model.tree, 0), twin_of(model, table, Limit(0.25), raising=True))


def test_a_node_that_a_branch_replaces_and_later_a_leaf_stays_one_node() -> None:
    table = noisy_table(76, n_rows=172, holes=0.0)
    dataset, model = grown(table, preset("id3", numeric="best", nominal="multiway"))
    trace = prune(model, "pessimistic", dataset=dataset, confidence=0.1).trace
    steps = trace["steps"]
    (again,) = [place for place, step in enumerate(steps) if step["node"] in [each["node"] for each in steps[:place]]]
    assert steps[again]["raised"] is None
    assert sum(step["nodes_removed"] for step in steps) == trace["before"]["nodes"] - trace["after"]["nodes"]


@pytest.mark.parametrize("missing", ["fractional", "surrogate"])
def test_numbers_that_are_close_to_each_other_go_where_the_slow_twin_sends_them(missing: str) -> None:
    n_raised = 0
    for seed in range(4):
        table = noisy_table(seed, n_rows=400, holes=0.03)
        close = Table(tuple(map(brought_close, table.columns)), table.target, table.weights)
        dataset, model = grown(close, preset("id3", numeric="best", missing=missing))
        result = prune(model, "pessimistic", dataset=dataset)
        n_raised += sum(step["raised"] is not None for step in result.trace["steps"])
        same(node_of(result.model.tree, 0), twin_of(model, close, Limit(0.25), raising=True))
    assert n_raised > 0


def brought_close(column: Column) -> Column:
    """The column with its numbers so near to 1 that float32 has one number for all."""
    if column.kind != "numeric":
        return column
    return Column(column.kind, tuple(None if cell is None else 1 + cell * 1e-9 for cell in column.values))


@pytest.mark.parametrize("quantile", ["normal", "c45", "exact"])
@given(
    weights=st.lists(st.floats(0, 60), min_size=2, max_size=4),
    more=st.floats(0, 8),
    confidence=st.sampled_from([0.001, 0.05, 0.25, 0.5]),
)
def test_no_estimate_falls_when_rows_are_added(
    quantile: str, weights: list[float], more: float, confidence: float
) -> None:
    def estimate(of: list[float]) -> float:
        wrong = sum(of) - max(of)
        return wrong + add_errs(sum(of), wrong, confidence, quantile=quantile)

    for place in range(len(weights)):
        grown_by = [weight + (more if place == each else 0) for each, weight in enumerate(weights)]
        assert estimate(grown_by) >= estimate(weights) - 1e-7


def test_the_exact_limit_of_a_leaf_with_hardly_a_right_row_is_all_of_it() -> None:
    assert add_errs(1.0, 1.0 - 1e-16, 0.25, quantile="exact") == pytest.approx(1e-16, abs=1e-15)
    assert add_errs(1e-17, 0.0, 0.25, quantile="exact") == pytest.approx(1e-17, rel=1e-9)


@pytest.mark.parametrize("quantile", ["normal", "c45", "exact"])
@pytest.mark.parametrize("confidence", [0.001, 0.25])
def test_the_limit_of_a_leaf_without_errors_does_not_lose_its_digits_if_rows_are_heavy(
    quantile: str, confidence: float
) -> None:
    # N·(1 - CF^(1/N)) = -ln CF - (ln CF)²/2N + …
    for weight in (1e12, 1e17, 1e50):
        assert add_errs(weight, 0.0, confidence, quantile=quantile) == pytest.approx(-math.log(confidence), rel=1e-10)


def test_a_leaf_that_no_row_reaches_answers_as_the_node_above_it_does() -> None:
    n_empty = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        cells = random.integers(0, 5, (5, 40))
        classes = np.where(random.random(40) < 0.2, random.integers(0, 3, 40), (cells[0] + cells[3]) % 3)
        letters = ["".join("uvxyz"[code] for code in row) + "npq"[y] for *row, y in zip(*cells, classes, strict=True)]
        data = data_of(" ".join(letters), "uvxyz " * 5, "npq")
        tree = prune(train(data, "j48", pruning=None), "pessimistic", dataset=data).model.tree
        empty = [node for node in range(1, tree.n_nodes) if tree.weight[node] == 0]
        assert [tree.value[node] for node in empty] == [tree.value[tree.parent[node]] for node in empty]
        n_empty += len(empty)
    assert n_empty > 0
