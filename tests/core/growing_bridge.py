"""The compiled grower behind the twins' interface: a twin's table and config in, a twin's node out."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from espalier import Dataset, Feature, FeatureKind, Role, Schema, TrainingConfig, training_config
from espalier.config.parameter_constraints import field_table
from espalier.config.presets import resolved
from espalier.growing.grow import Grown, grow
from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC, UNKNOWN
from espalier.model.tree import Tree
from tests.reference.missing import Surrogate
from tests.reference.predictor import next_branches
from tests.reference.table import Table
from tests.reference.tree import Node

TESTS = {LEAF: "leaf", NUMERIC: "numeric", NOMINAL: "nominal", UNKNOWN: "unknown"}
FIELDS = frozenset(info.name for info in field_table(TrainingConfig))
ZERO_IF_NONE = ("min_weight_split", "min_weight_leaf", "min_sd_fraction", "min_variance_fraction")


def grow_table(table: Table, config: Mapping[str, Any], validation: Table | None = None) -> Node:
    """Grow with the compiled grower what the twin's function of the same name would."""
    grown = grown_table(table, config, validation)
    grown.tree.validate(n_attributes=len(table.columns))
    root = node_of(grown.tree, 0)
    if config["missing"] == "surrogate":
        root = with_disagreements(root, table, list(enumerate(table.weights)))
    return root


def grown_table(table: Table, config: Mapping[str, Any], validation: Table | None = None) -> Grown:
    data = dataset_of(table)
    held_out = None if validation is None else dataset_of(validation)
    return grow(data, resolved(config_of(config, table), data.schema), validation=held_out)


def config_of(config: Mapping[str, Any], table: Table) -> TrainingConfig:
    """Translate the twin's dict: attributes by position become names, None becomes 0 where a number is asked for."""
    fields = {name: value for name, value in config.items() if name in FIELDS}
    fields |= {name: fields[name] or 0.0 for name in ZERO_IF_NONE}
    for name in ("attribute_costs", "cut_points"):
        if fields[name] is not None:
            fields[name] = {f"a{place}": value for place, value in fields[name].items()}
    if isinstance(fields["class_weight"], dict):
        fields["class_weight"] = {f"c{code}": value for code, value in fields["class_weight"].items()}
    if table.target.kind == "number":
        # What the twin never looks at for numbers is refused by the product.
        fields |= {"mdl_correction": False, "average_gain_guard": False, "collapse": False, "class_weight": None}
    return training_config("cart", **fields)


def dataset_of(table: Table) -> Dataset:
    features, columns = [], []
    for place, column in enumerate(table.columns):
        features.append(feature(f"a{place}", column.kind, column.k, Role.ATTRIBUTE))
        columns.append(cells(column.kind, column.values))
    target = table.target
    classes = tuple(f"c{code}" for code in range(target.k))
    kind = FeatureKind.NOMINAL if target.kind == "class" else FeatureKind.NUMERIC
    features.append(Feature("target", kind, Role.TARGET, classes))
    columns.append(cells("nominal" if target.kind == "class" else "numeric", target.values))
    features.append(Feature("weight", FeatureKind.NUMERIC, Role.WEIGHT))
    columns.append(np.array(table.weights, dtype=np.float64))
    return Dataset(Schema(tuple(features)), tuple(columns))


def feature(name: str, kind: str, n_categories: int, role: Role) -> Feature:
    if kind == "numeric":
        return Feature(name, FeatureKind.NUMERIC, role)
    own = FeatureKind.ORDINAL if kind == "ordinal" else FeatureKind.NOMINAL
    return Feature(name, own, role, tuple(f"v{code}" for code in range(n_categories)))


def cells(kind: str, values: Any) -> Any:
    if kind == "numeric":
        return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    return np.array([-1 if value is None else int(value) for value in values], dtype=np.int32)


def node_of(tree: Tree, root: int) -> Node:
    """Give the tree as the twin would: children after their parents, so the nodes are made from the last one."""
    made: dict[int, Node] = {}
    for node in range(tree.n_nodes - 1, root - 1, -1):
        test = TESTS[int(tree.test[node])]
        stats = tuple(float(value) for value in tree.stats[node])
        made[node] = Node(
            weight=float(tree.weight[node]),
            stats=stats,
            value=float(tree.value[node]),
            attribute=int(tree.feature[node]),
            test=test,
            threshold=float(tree.threshold[node]),
            branch_of_category=tuple(int(code) for code in tree.codes(node)) if test == "nominal" else (),
            gain=float(tree.gain[node]),
            fallback=int(tree.fallback[node]),
            branch_weight=tuple(
                float(share) for share in tree.branch_weight[tree.child_start[node] : tree.child_start[node + 1]]
            ),
            surrogates=surrogates_of(tree, node),
            children=tuple(made.pop(child) for child in tree.children(node)),
        )
    return made[root]


def with_disagreements(node: Node, table: Table, sample: list[tuple[int, float]]) -> Node:
    """Count what each surrogate sends the other way: a tree does not keep it, some published figures need it."""
    if not node.children:
        return node
    branches: list[list[tuple[int, float]]] = [[] for _ in node.children]
    astray = [0.0] * len(node.surrogates)
    for row, weight in sample:
        steps = next_branches(node, table.row(row), "surrogate")
        branches[steps[0][0]].append((row, weight))
        if table.row(row)[node.attribute] is None:
            continue
        for place, surrogate in enumerate(node.surrogates):
            answer = surrogate.branch(table.row(row)[surrogate.attribute])
            astray[place] += weight if answer not in (-1, steps[0][0]) else 0.0
    children = (with_disagreements(child, table, rows) for child, rows in zip(node.children, branches, strict=True))
    surrogates = (replace(each, disagreeing=wrong) for each, wrong in zip(node.surrogates, astray, strict=True))
    return replace(node, children=tuple(children), surrogates=tuple(surrogates))


def surrogates_of(tree: Tree, node: int) -> tuple[Surrogate, ...]:
    kept = tree.surrogates
    if kept is None:
        return ()
    return tuple(
        Surrogate(
            attribute=int(kept.feature[at]),
            test=TESTS[int(kept.test[at])],
            threshold=float(kept.threshold[at]),
            below=int(kept.below[at]),
            branch_of_category=tuple(
                int(code) for code in kept.code_branch[kept.code_start[at] : kept.code_start[at + 1]]
            ),
            agreement=math.nan,
            adjusted=float(kept.agreement[at]),
        )
        for at in range(kept.start[node], kept.start[node + 1])
    )
