"""What a pruning looks at and what it gives: rows in; the new model and the account of what went and why out."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.branch_words import branch_text
from espalier.dataset import Dataset
from espalier.model import Model
from espalier.pruners import Pruner, pruner_name, pruner_to_dict
from espalier.tree import Tree

__all__ = ["Pruned", "PruningRows", "collapsed", "counts", "pruned_model", "step_lines"]


@dataclass(frozen=True, slots=True)
class PruningRows:
    """The rows that a method may look at.

    Attributes:
        training: Those that the tree was grown from; None where they are not at hand.
        held_out: Those that it has not learned from; None where there are none.
    """

    training: Dataset | None = None
    held_out: Dataset | None = None


@dataclass(frozen=True)
class Pruned:
    """A pruned model with its trace.

    Attributes:
        model: The new model; its parent is unchanged.
        account: The trace, or what makes it: a line a node takes longer to write than to prune.
    """

    model: Model
    account: Mapping[str, Any] | Callable[[], Mapping[str, Any]]

    @cached_property
    def trace(self) -> Mapping[str, Any]:
        """JSON: what went and why.

        ``method``, ``parameters``, ``estimate`` (what was optimised, in words), ``before`` and ``after`` (leaves, nodes
        and the estimate), ``held_out_rows`` and ``notes`` (what a person should know of the rows that judged, a list of
        sentences; only where there is something), and ``steps``: a line a node that went, in the order in which it
        happened, numbered as in the parent's tree, with its rule, the estimate of its subtree before and of what took
        its place.
        """
        return self.account() if callable(self.account) else self.account


def pruned_model(model: Model, tree: Tree, pruner: Pruner) -> Model:
    """Give `model` with the pruned tree; what was said of the unpruned one is no longer said."""
    before = model.tree.n_leaves
    note = f"pruned by {pruner_name(pruner)}: {tree.n_leaves} of {before} leaves remain"
    notes = tuple(each for each in model.notes if not each.startswith(("unpruned", "pruned by")))
    return dataclasses.replace(model, body=tree, pruning=pruner_to_dict(pruner), notes=(note, *notes))


def counts(tree: Tree, estimate: float | None) -> dict[str, Any]:
    """Give the size of a tree beside its estimate."""
    return {"leaves": tree.n_leaves, "nodes": tree.n_nodes, "estimate": estimate}


def step_lines(
    model: Model, nodes: npt.NDArray[Any], rules: str | list[str], before: Any, after: Any, **more: list[Any]
) -> list[dict[str, Any]]:
    """Give a line a node that went: arrays and lists, an entry a step.

    ``nodes_removed`` are those that this step took: not those that a step before had taken, nor a raised branch.
    """
    tree, names = model.tree, [feature.name for feature in model.schema.attributes]
    listed = nodes.tolist()
    columns: dict[str, list[Any]] = {
        "node": listed,
        "attribute": [names[feature] for feature in tree.feature[nodes].tolist()],
        "reached_by": [branch_text(model, node) if node else "every row" for node in listed],
        "rule": [rules] * len(listed) if isinstance(rules, str) else rules,
        "before": np.asarray(before).tolist(),
        "after": np.asarray(after).tolist(),
        "weight": tree.weight[nodes].tolist(),
        "nodes_removed": _n_removed(tree, listed, more.get("raised")),
        **more,
    }
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _n_removed(tree: Tree, nodes: list[int], raised: list[int | None] | None) -> list[int]:
    """Give for each step how many nodes of those still there it took; what stays is the node, or its raised branch."""
    stays = np.ones(tree.n_nodes, dtype=np.bool_)
    removed = []
    for node, branch in zip(nodes, raised or [None] * len(nodes), strict=True):
        below = stays[node : node + int(tree.size[node])]
        kept = slice(0, 1) if branch is None else slice(branch - node, branch - node + int(tree.size[branch]))
        there, left = np.count_nonzero(below), below[kept].copy()
        below[:] = False
        below[kept] = left
        removed.append(int(there - np.count_nonzero(left)))
    return removed


def collapsed(tree: Tree, gone: npt.NDArray[Any]) -> tuple[Tree, npt.NDArray[np.intp]]:
    """Give the tree in which the nodes of `gone` are leaves, and the nodes that remain, in their order."""
    mask = np.zeros(tree.n_nodes, dtype=np.bool_)
    mask[gone] = True
    return tree.collapsed(mask), tree.remaining(mask)
