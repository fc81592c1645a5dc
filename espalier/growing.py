"""Growing a tree: prepares arrays, runs a kernel, freezes what it gives.

Definitions: Quinlan (1986, 1992, 1993, 1996), Breiman and others (1984), Wang and Witten (1997).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.config import TrainingConfig
from espalier.dataset import Dataset
from espalier.encoding import encoded
from espalier.errors import Cancelled, ConfigError, DataError, Fault
from espalier.preparation import Preparation
from espalier.processors import n_threads, thread_pool
from espalier.progress import Progress
from espalier.scales import scales_of
from espalier.scratch import scratch_arrays
from espalier.training_table import (
    Table,
    filled,
    imputed_values,
    many_valued,
    training_table,
    with_imputed,
)
from espalier.tree import MAX_NODES, Surrogates, Tree

__all__ = ["Grown", "grow"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

MAX_CODE_ENTRIES: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class Grown:
    """What growing gives: the tree, what a row needs before it, and what a person should know."""

    tree: Tree
    preparation: Preparation
    notes: tuple[str, ...] = ()


def grow(
    dataset: Dataset,
    config: TrainingConfig,
    *,
    progress: Progress | None = None,
    validation: Dataset | None = None,
) -> Grown:
    """Grow a tree from all rows of `dataset` that have weight.

    Args:
        dataset: With a target.
        config: With its criterion filled in (`espalier.config.resolved`).
        progress: Watched from, and stopped by, another thread.
        validation: The rows that ``validation_stop`` looks at.

    Raises:
        ConfigError: ``validation_stop`` without validation rows.
        DataError: No rows, a missing or infinite target, a negative weight, or a tree larger than memory may hold.
        Cancelled: `progress` was stopped.
    """
    watch = progress if progress is not None else Progress()
    if config.validation_stop and validation is None:
        raise ConfigError([Fault("/validation_stop", "required", "needs held-out rows: give a holdout")])
    table = training_table(dataset, config)
    scales = scales_of(table.attributes, table.columns)
    imputed = imputed_values(table) if config.missing == "imputed" else None
    if imputed is not None:
        table = with_imputed(table, imputed)
    watch.check()
    valid = _validation_rows(validation, table, imputed) if config.validation_stop and validation is not None else None
    tree, notes = _grown_tree(table, config, watch, valid)
    return Grown(tree, Preparation(imputed, scales), notes)


def _validation_rows(
    validation: Dataset, table: Table, imputed: tuple[float, ...] | None
) -> tuple[Floats, Floats, Floats]:
    """Give (attribute values or codes as float64 (F, v), target, weight)."""
    columns: Sequence[npt.NDArray[Any]] = validation.attributes
    if imputed is not None:
        columns = filled(table.attributes, columns, imputed)
    values = np.empty((len(columns), validation.n_rows))
    for place, (feature, column) in enumerate(zip(table.attributes, columns, strict=True)):
        values[place] = np.where(column < 0, np.nan, column) if feature.coded else column
    return values, np.asarray(validation.target).astype(np.float64), np.array(validation.weight)


def _grown_tree(
    table: Table, config: TrainingConfig, watch: Progress, valid: tuple[Floats, Floats, Floats] | None
) -> tuple[Tree, tuple[str, ...]]:
    from espalier.kernels import general  # noqa: PLC0415 - numba is loaded when a tree is grown, not before

    rules = _rules(table, config)
    if valid is None and not config.cut_points:
        tree = _grown_fast(rules, table, watch)
        if tree is not None:
            return (_collapsed(tree) if config.collapse else tree), ()
    columns, orders = encoded(table, config, watch)
    work, groups, subsets, rare = scratch_arrays(table, config, columns, valid, watch)
    task = general.Task(rules, columns, _rows(table), work, groups, subsets, rare, orders)
    limits = MAX_NODES, MAX_CODE_ENTRIES
    watch.begin(general.phase(task, watch.state, limits))
    answer = general.grow_in_parts(task, watch.state, limits)
    return _frozen(answer, table, config, watch)


def _grown_fast(rules: Any, table: Table, watch: Progress) -> Tree | None:
    """Grow in the fast lane; None where it cannot take the task."""
    from espalier.kernels import fast, fast_table, grow_binary, joining  # noqa: PLC0415
    from espalier.kernels.jit import phase_of  # noqa: PLC0415

    n_categories = [len(feature.categories) for feature in table.attributes]
    unordered = [len(feature.categories) if feature.unordered else 0 for feature in table.attributes]
    if not fast_table.can_grow_fast(rules, unordered, table.n_rows) or not table.is_complete():
        return None
    nominal = [feature.unordered for feature in table.attributes]
    with thread_pool(n_threads()) as pool:
        columns = fast_table.fast_table(rules, table.columns, n_categories, table.target, table.weight, pool)
        watch.check()
        watch.begin(phase_of(grow_binary.grow_subtree, "growing"))
        parts = fast.grow_fast(rules, columns, watch.state, pool)
        if parts is None:
            raise Cancelled("stopped on request")
        del columns  # orders and codes: as much as the table itself, and of no more use
        arrays = joining.joined(rules, parts, table.columns, nominal, pool)
    return Tree(**arrays, surrogates=None, linear=None)


def _collapsed(tree: Tree) -> Tree:
    from espalier.kernels import freeze  # noqa: PLC0415

    n_children = np.diff(tree.child_start)
    return tree.collapsed(freeze.are_futile(tree.parent, n_children, tree.stats))


def _rules(table: Table, config: TrainingConfig) -> Any:
    from espalier.kernels import codes  # noqa: PLC0415

    root_sd, root_weight = 0.0, float(table.n_rows)
    if not np.all(table.weight == 1.0):
        root_weight = math.fsum(table.weight)
    if not table.n_classes and (config.min_sd_fraction or config.min_variance_fraction):
        mean = math.fsum(table.weight * table.target) / root_weight
        root_sd = math.sqrt(math.fsum(table.weight * (table.target - mean) ** 2) / root_weight)
    costs = dict(config.attribute_costs or ())
    many = many_valued(table, config)
    return codes.Rules(
        criterion=codes.CRITERIA[str(config.criterion)],
        n_classes=table.n_classes,
        nominal=codes.NOMINALS[config.nominal],
        numeric=codes.NUMERICS[config.numeric],
        observed=int(config.threshold == "observed"),
        window=int(config.window == "c45"),
        mdl_correction=int(config.mdl_correction),
        average_gain_guard=int(config.average_gain_guard),
        missing=codes.MISSING[config.missing],
        max_surrogates=config.max_surrogates,
        max_depth=-1 if config.max_depth is None else config.max_depth,
        max_leaf_nodes=-1 if config.max_leaf_nodes is None else config.max_leaf_nodes,
        leaf_weight_of_winner=int(config.leaf_weight_rule == "winner"),
        cost_function=codes.COST_FUNCTIONS[config.cost_function],
        all_many_valued=int(bool(np.all(many == 1))),
        min_weight_split=config.min_weight_split,
        min_weight_leaf=config.min_weight_leaf,
        min_impurity_decrease=math.nan if config.min_impurity_decrease is None else config.min_impurity_decrease,
        chi_square_alpha=math.nan if config.chi_square_alpha is None else config.chi_square_alpha,
        min_sd=config.min_sd_fraction * root_sd,
        min_variance=config.min_variance_fraction * root_sd**2,
        cost_weight=config.cost_weight,
        cheapest=min([1.0, *costs.values()]),
        root_weight=root_weight,
    )


def _rows(table: Table) -> Any:
    """Give the kernels' Rows."""
    from espalier.kernels import codes  # noqa: PLC0415

    none = np.zeros(table.n_rows)
    return codes.Rows(
        target_class=np.array(table.target if table.n_classes else none, dtype=np.int32),
        target=np.array(none if table.n_classes else table.target, dtype=np.float64),
        weight=np.array(table.weight, dtype=np.float64),
    )


def _frozen(
    answer: tuple[Any, ...], table: Table, config: TrainingConfig, watch: Progress
) -> tuple[Tree, tuple[str, ...]]:
    """Make the tree of what a kernel gives.

    Raises:
        Cancelled: The kernel saw the stop flag.
        DataError: The tree would be larger than memory may hold.
    """
    from espalier.kernels import codes, freeze  # noqa: PLC0415
    from espalier.kernels.nodes import FEATURE, HEURISTIC  # noqa: PLC0415

    status, n_nodes, ints, reals, stats, code_table, _, s_ints, s_reals, _, s_codes, _ = answer
    if status == codes.STOPPED:
        raise Cancelled("stopped on request")
    if status != codes.DONE:
        largest = max(table.attributes, key=lambda attribute: len(attribute.categories))
        most = f"{largest.name!r} has {len(largest.categories):,} categories"
        raise DataError([Fault("", "too_large", TOO_LARGE[status].format(most=most))])
    if config.collapse:
        freeze.collapse_nodes(n_nodes, ints, stats)
    n_categories = np.array([len(feature.categories) for feature in table.attributes], dtype=np.int32)
    listed, n_codes, n_surrogates = freeze.order_nodes(n_nodes, ints, n_categories)
    arrays = _empty_arrays(len(listed), n_codes)
    freeze.write_nodes(
        listed, ints, reals, code_table, n_categories, *(arrays[name] for name in arrays if name != "stats")
    )
    arrays["value"] = arrays["value"].astype(np.int32) if table.n_classes else arrays["value"]
    surrogates = None
    if config.missing == "surrogate":
        surrogates = _surrogates(listed, ints, s_ints, s_reals, s_codes, n_categories, n_surrogates)
    heuristic = sorted({int(ints[node, FEATURE]) for node in listed[ints[listed, HEURISTIC] == 1]} - {-1})
    notes = tuple(
        f"attribute {table.attributes[place].name!r}: subsets of more than ten categories were sought along orders "
        "(by each class's share and the first principal component), which need not hold the best one"
        for place in heuristic
    )
    return Tree(**arrays, stats=stats[listed], surrogates=surrogates, linear=None), notes


TOO_LARGE: Final[Mapping[int, str]] = {
    2: f"the tree would have more than {MAX_NODES:,} nodes: set max_depth or min_weight_leaf, or another nominal split",
    3: f"the tests of categories would take more than {MAX_CODE_ENTRIES:,} entries ({{most}}): set max_depth or "
    "min_weight_leaf, or ignore such a column",
}


def _empty_arrays(n_nodes: int, n_codes: int) -> dict[str, npt.NDArray[Any]]:
    """Give the arrays of a tree, in the order in which the kernel takes them."""
    n_children = n_nodes - 1
    return {
        "parent": np.empty(n_nodes, np.int32),
        "size": np.empty(n_nodes, np.int32),
        "child_start": np.empty(n_nodes + 1, np.int32),
        "child": np.empty(n_children, np.int32),
        "feature": np.empty(n_nodes, np.int32),
        "test": np.empty(n_nodes, np.int8),
        "threshold": np.empty(n_nodes),
        "code_start": np.empty(n_nodes + 1, np.int32),
        "code_branch": np.empty(n_codes, np.int32),
        "fallback": np.empty(n_nodes, np.int32),
        "branch_weight": np.empty(n_children),
        "weight": np.empty(n_nodes),
        "gain": np.empty(n_nodes),
        "value": np.empty(n_nodes),
    }


def _surrogates(  # noqa: PLR0917 - the kernel's own buffers
    listed: Ints, ints: Ints, s_ints: Ints, s_reals: Floats, s_codes: Ints, n_categories: Ints, count: int
) -> Surrogates:
    from espalier.kernels import freeze  # noqa: PLC0415

    arrays: dict[str, Any] = {
        "start": np.empty(len(listed) + 1, np.int32),
        "feature": np.empty(count, np.int32),
        "test": np.empty(count, np.int8),
        "threshold": np.empty(count),
        "below": np.empty(count, np.int32),
        "code_start": np.empty(count + 1, np.int32),
        "agreement": np.empty(count),
    }
    sides = freeze.write_surrogates(listed, ints, s_ints, s_reals, s_codes, n_categories, *arrays.values())
    return Surrogates(**arrays, code_branch=sides)
