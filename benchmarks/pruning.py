"""Pruning: the cost-complexity path beside scikit-learn's, the other methods beside growing, and rules."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import espalier
from benchmarks import tables
from benchmarks.measuring import Measurable, Measured, Subject, measure, print_table, ratio_text, seconds_text
from benchmarks.run import Run

N_ROWS_PATH: Final = 500_000
N_ROWS_METHODS: Final = 100_000
PATH_TARGET: Final = 20
PATH: Final = "espalier.pruning_path"
SCIKIT_LEARN: Final = "scikit-learn, cost_complexity_pruning_path"
INNER_STEP: Final = "scikit-learn, its step for the path alone"
SHARE_TARGET: Final = 0.5
SECONDS_TARGET: Final = 0.05
"""A pruning may take `SHARE_TARGET` of the growing time or `SECONDS_TARGET` seconds, whichever is more."""
HOLDOUT_SHARE: Final = 1 / 3
TURNS: Final = 9
"""Turns of each method. A pruning takes so little time that three turns are not enough."""


@dataclass(frozen=True, slots=True)
class Method:
    """One line of the table of methods.

    Attributes:
        method: Name among `espalier.PRUNERS`.
        preset: Preset that grows the tree.
        params: Parameters of the method that differ from its defaults.
        fields: Fields of the configuration that differ from the preset.
        holds_out: Whether rows are held out for the pruning.
        table: Name of the training data in TABLES.
    """

    method: str
    preset: str
    params: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    holds_out: bool = False
    table: str = "mixed"


UNPRUNED: Final[Mapping[str, Any]] = MappingProxyType({"pruning": None})
METHODS: Final[Mapping[str, Method]] = MappingProxyType(
    {
        "reduced error": Method("reduced_error", "cart", holds_out=True),
        "reduced error, greedy": Method("reduced_error", "cart", {"order": "greedy"}, holds_out=True),
        "pessimistic with raising": Method("pessimistic", "c45", fields=UNPRUNED),
        "pessimistic, no raising": Method("pessimistic", "c45", {"raising": False}, UNPRUNED),
        "with raising, adult": Method("pessimistic", "c45", fields=UNPRUNED, table="adult"),
        "with raising, adult, cart": Method("pessimistic", "cart", fields=UNPRUNED, table="adult"),
        "with raising, two classes": Method("pessimistic", "c45", fields=UNPRUNED, table="two classes"),
        "with raising, two classes, cart": Method("pessimistic", "cart", fields=UNPRUNED, table="two classes"),
        "with raising, three classes": Method("pessimistic", "c45", fields=UNPRUNED, table="three classes"),
        "with raising, three classes, cart": Method("pessimistic", "cart", fields=UNPRUNED, table="three classes"),
    }
)


def run(run: Run) -> None:
    """Print the tables of pruning and of rules."""
    if run.takes(PATH):
        _show_path(run)
    _show_methods(run)
    if run.takes("rules"):
        _show_rules()


def scikit_learn_path(path: str) -> Mapping[str, Measurable]:
    """Return measurables of scikit-learn's path: its public method, which grows the tree first, and the inner step."""
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - only in its own process
    from sklearn.tree._tree import ccp_pruning_path  # noqa: PLC0415 - as above

    rows, _ = tables.read(path)
    few = rows.first(tables.FEW)
    peer = DecisionTreeClassifier(random_state=0)
    grown = DecisionTreeClassifier(random_state=0).fit(rows.features, rows.target)

    def call(rows: tables.Rows) -> int:
        return len(peer.cost_complexity_pruning_path(rows.features, rows.target).ccp_alphas)

    def step() -> int:
        return len(ccp_pruning_path(grown.tree_)["ccp_alphas"])

    def describe(n_trees: int) -> Mapping[str, Any]:
        return {"leaves": int(grown.get_n_leaves()), "trees": n_trees}

    return {
        "alone": Measurable(step, describe=describe),
        "whole": Measurable(lambda: call(rows), lambda: call(few), describe),
    }


def finding_path(path: str) -> Measurable:
    """Return a measurable that finds Espalier's path of a full-grown tree."""
    rows, _ = tables.read(path)
    model = espalier.train(rows.dataset(), "cart")
    few = espalier.train(rows.first(tables.FEW).dataset(), "cart")
    return Measurable(
        lambda: espalier.pruning_path(model),
        lambda: espalier.pruning_path(few),
        lambda path: {"trees": len(path.alpha), "leaves": model.tree.n_leaves},
    )


def growing(method: str, n_rows: int) -> Measurable:
    """Return a measurable that only grows the tree for a method, without the figures that `espalier.train` adds."""
    from espalier.config.presets import resolved  # noqa: PLC0415 - an internal function
    from espalier.growing.grow import grow  # noqa: PLC0415 - as above

    chosen = METHODS[method]
    training, _ = _rows(chosen, n_rows)
    config = resolved(espalier.training_config(chosen.preset, **chosen.fields), training.schema)
    few = training.take(np.arange(min(training.n_rows, tables.FEW)))
    return Measurable(
        lambda: grow(training, config), lambda: grow(few, config), lambda grown: {"leaves": grown.tree.n_leaves}
    )


def pruning(method: str, n_rows: int) -> Measurable:
    """Return a measurable that only prunes, without the figures that `espalier.prune` adds."""
    from espalier.progress import Progress  # noqa: PLC0415 - as above
    from espalier.pruning import PRUNING_FUNCTIONS  # noqa: PLC0415 - as above
    from espalier.pruning.result import PruningRows  # noqa: PLC0415 - as above

    chosen = METHODS[method]
    rows = PruningRows(*_rows(chosen, n_rows))
    few = PruningRows(*_rows(chosen, tables.FEW))
    pruner = espalier.pruning_method(chosen.method, **chosen.params)

    def act_on(rows: PruningRows) -> Callable[[], Any]:
        assert rows.training is not None  # noqa: S101 - `_rows` gives them
        model = espalier.train(rows.training, chosen.preset, **chosen.fields)
        return lambda: PRUNING_FUNCTIONS[type(pruner)](model, pruner, rows, Progress())

    return Measurable(act_on(rows), act_on(few), lambda pruned: {"leaves": pruned.model.tree.n_leaves})


def calling(method: str, n_rows: int) -> Measurable:
    """Return a measurable of `espalier.prune`, which also splits off held-out rows again and evaluates the result."""
    chosen, pruner = METHODS[method], espalier.pruning_method(METHODS[method].method, **METHODS[method].params)
    holdout = espalier.Holdout(fraction=HOLDOUT_SHARE) if chosen.holds_out else None

    def act_on(n_rows: int) -> Callable[[], Any]:
        dataset = TABLES[chosen.table](n_rows)
        model = espalier.train(dataset, chosen.preset, holdout=holdout, **chosen.fields)
        return lambda: espalier.prune(model, pruner, dataset=dataset)

    return Measurable(act_on(n_rows), act_on(tables.FEW))


def rules(step: str, max_depth: int | None) -> Measurable:
    """Return a measurable of one step from a tree on adult to its rules."""
    training, test = tables.adult_with_categories()
    holdout = espalier.Holdout(fraction=HOLDOUT_SHARE)
    model = espalier.train(training, "c45", holdout=holdout, max_depth=max_depth)
    first_class = model.schema.classes[0]
    steps: Mapping[str, Callable[[], espalier.Model]] = {
        "extract": lambda: espalier.extract_rules(model),
        "describe": lambda: _after(lambda: espalier.class_dnf(model, first_class), model),
        "post_prune": lambda: espalier.prune(model, "rules", dataset=training).model,
        "post_prune_pessimistic": lambda: (
            espalier.prune(model, "rules", dataset=training, estimate="pessimistic").model
        ),
    }

    def describe(result: espalier.Model) -> Mapping[str, Any]:
        accuracy = espalier.evaluate(result, test).accuracy
        return {"leaves": model.tree.n_leaves, "size": _size(result), "accuracy": accuracy}

    return Measurable(steps[step], describe=describe)


def _after(action: Callable[[], Any], model: espalier.Model) -> espalier.Model:
    action()
    return model


def _size(model: espalier.Model) -> int:
    body = model.body
    return len(body.rules) if isinstance(body, espalier.RuleList) else model.tree.n_leaves


def _rows(method: Method, n_rows: int) -> tuple[espalier.Dataset, espalier.Dataset | None]:
    dataset = TABLES[method.table](n_rows)
    if not method.holds_out:
        return dataset, None
    n_held_out = round(n_rows * HOLDOUT_SHARE)
    return dataset.take(np.arange(n_held_out, n_rows)), dataset.take(np.arange(n_held_out))


def _nominal(n_rows: int) -> espalier.Dataset:
    """Return the table `mixed`, with its coded columns as nominal columns."""
    rows = tables.mixed(n_rows)
    plain = rows.dataset()
    labels = tuple(f"v{code}" for code in range(tables.N_CATEGORIES))
    features, columns = [], []
    for position, (feature, column) in enumerate(zip(plain.schema.features, plain.columns, strict=True)):
        is_code = 10 <= position < 20
        features.append(
            espalier.Feature(feature.name, espalier.FeatureKind.NOMINAL, categories=labels) if is_code else feature
        )
        columns.append(column.astype(np.int32) if is_code else column)
    return espalier.Dataset(espalier.Schema(tuple(features)), tuple(columns))


TABLES: Final[Mapping[str, Callable[[int], espalier.Dataset]]] = MappingProxyType(
    {
        "mixed": _nominal,
        "adult": lambda n_rows: _first_rows(tables.adult_with_categories()[0], n_rows),
        "two classes": lambda n_rows: tables.two_classes(n_rows).dataset(),
        "three classes": lambda n_rows: tables.three_classes(n_rows).dataset(),
    }
)
"""Data of the methods: 10 numeric and 10 nominal columns, a public table, and two tables of 20 numeric columns."""


def _first_rows(dataset: espalier.Dataset, n_rows: int) -> espalier.Dataset:
    return dataset.take(np.arange(min(n_rows, dataset.n_rows)))


def _show_path(run: Run) -> None:
    path = tables.write("mixed", run.rows(N_ROWS_PATH), run.folder)
    results = measure(
        [
            Subject(PATH, "benchmarks.pruning:finding_path", {"path": path}),
            Subject(SCIKIT_LEARN, "benchmarks.pruning:scikit_learn_path", {"path": path}, "whole"),
            Subject(INNER_STEP, "benchmarks.pruning:scikit_learn_path", {"path": path}, "alone"),
        ]
    )
    ours = results[PATH].seconds
    shown = [_path_line(name, result, ours) for name, result in results.items()]
    title = f"Cost-complexity path of a full-grown tree, {run.rows(N_ROWS_PATH):,} rows, 10 + 10 coded columns"
    names = ("what", "seconds", "x espalier", "target", "", "leaves", "trees of the path")
    print_table(title, names, shown, *_faults(results))


def _path_line(name: str, result: Measured, ours: float | None) -> list[str]:
    target, holds = "", ""
    if name != PATH:
        target = f">= {PATH_TARGET}"
        holds = "not measured"
        if result.seconds and ours:
            holds = "holds" if result.seconds / ours >= PATH_TARGET else "missed"
    ratio = ratio_text(result.seconds, ours)
    return [name, seconds_text(result.seconds), ratio, target, holds, *_facts(result, "leaves", "trees")]


def _show_methods(run: Run) -> None:
    n_rows = run.rows(N_ROWS_METHODS)
    lines, faults = [], []
    for name, method in METHODS.items():
        if not run.takes(name):
            continue
        if method.table == "adult" and not tables.REFERENCE.is_dir():
            faults.append(f"{name}: the reference data are not here (ESPALIER_REFERENCE names their folder)")
            continue
        arguments = {"method": name, "n_rows": n_rows}
        steps = ("growing", "pruning", "calling")
        subjects = [Subject(step, f"benchmarks.pruning:{step}", arguments) for step in steps]
        results = measure(subjects, repetitions=TURNS)
        grown, pruned, called = (results[step] for step in steps)
        share = pruned.seconds / grown.seconds if grown.seconds and pruned.seconds else None
        leaves = [*_facts(grown, "leaves"), *_facts(pruned, "leaves")]
        shown = "–" if share is None else f"{100 * share:.0f} %"
        holds = "not measured" if share is None else "holds" if _is_in_time(pruned, share) else "missed"
        times = [seconds_text(grown.seconds), seconds_text(pruned.seconds)]
        target = f"<= {100 * SHARE_TARGET:.0f} % or {1000 * SECONDS_TARGET:.0f} ms"
        lines.append([name, method.preset, *times, shown, target, holds, seconds_text(called.seconds), *leaves])
        faults += _faults(results)
    names = ("method", "preset", "growing", "pruning", "share", "target", "", "whole call", "leaves before", "after")
    print_table(f"Pruning beside growing, {n_rows:,} rows (adult: those it has)", names, lines, *faults)


def _is_in_time(pruned: Measured, share: float) -> bool:
    return share <= SHARE_TARGET or (pruned.seconds or 0.0) <= SECONDS_TARGET


RULE_STEPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "the rules of the tree": "extract",
        "one class as a disjunction of conjunctions": "describe",
        "post-pruned by held-out rows": "post_prune",
        "post-pruned by the pessimistic estimate": "post_prune_pessimistic",
    }
)


def _show_rules() -> None:
    if not tables.REFERENCE.is_dir():
        print("\nRules of a tree on adult: the reference data are not here (ESPALIER_REFERENCE names their folder)")
        return
    for max_depth in (8, None):
        arguments = {"max_depth": max_depth}
        results: dict[str, Measured] = {}
        for name, step in RULE_STEPS.items():
            results |= measure([Subject(name, "benchmarks.pruning:rules", {"step": step, **arguments})])
        lines = [
            [name, seconds_text(result.seconds), *_facts(result, "leaves", "size", "accuracy")]
            for name, result in results.items()
        ]
        depth = "as grown and pruned by c45" if max_depth is None else f"depth {max_depth}"
        names = ("what", "seconds", "leaves of the tree", "rules", "accuracy on the test rows")
        print_table(f"Rules of a c45 tree on adult, {depth}", names, lines, *_faults(results))


def _facts(result: Measured, *names: str) -> list[str]:
    return [_shown(result.facts.get(name)) for name in names]


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _faults(results: Mapping[str, Measured]) -> list[str]:
    return [f"{name}: {result.fault}" for name, result in results.items() if result.fault]
