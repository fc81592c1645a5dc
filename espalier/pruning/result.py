"""The result of a pruning: the new model, a trace of its steps, and notes on the rows that it was based on."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from espalier.arrays import Array, Mask, Places
from espalier.config.parameter_constraints import parameters_to_dict
from espalier.config.pruning import Pruner, pruner_name, pruner_to_dict
from espalier.data.dataset import Dataset
from espalier.errors import listed
from espalier.explanation.branch_and_leaf_text import BranchText
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.model.tree import Tree
from espalier.prediction.batch import predict_batch
from espalier.prediction.encode_columns import encode_columns, target_of, tested_places, unseen_rows

MAX_CLASSES_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class PruningRows:
    """The rows that a method may use.

    Attributes:
        training: The rows that the tree was grown from; None only if the method does not need them.
        held_out: Rows that the tree has not learned from; None only if the method does not need them.
    """

    training: Dataset | None = None
    held_out: Dataset | None = None


@dataclass(frozen=True)
class Pruned:
    """A pruned model with its trace.

    Attributes:
        model: The new model; the unpruned model is unchanged.
        pruner: The method's parameters.
        account: Builds the trace except for its first two members. It is called by `trace`, once, since it may be slow.
    """

    model: Model
    pruner: Pruner
    account: Callable[[], Mapping[str, Any]]

    @cached_property
    def trace(self) -> Mapping[str, Any]:
        """The trace as JSON.

        Its members are ``method``, ``parameters``, ``estimate`` (the optimised figure, in words), ``before`` and
        ``after`` (size and estimate), ``notes`` (sentences on the rows that were used; absent if there are none),
        ``steps``, and others that depend on the method. A step replaces a node, or drops a condition of a rule. Its
        object has the node's number in the unpruned tree, the reason, and the estimates before and after the step.
        """
        method = {"method": pruner_name(self.pruner), "parameters": parameters_to_dict(self.pruner)}
        return {**method, **self.account()}


def pruned_model(model: Model, body: Tree | RuleList, pruner: Pruner, notes: Sequence[str] = ()) -> Model:
    """Return `model` with the pruned body, without notes of earlier prunings; `notes` are those on a list of rules."""
    if isinstance(body, Tree):
        notes = [f"pruned by {pruner_name(pruner)}: {body.n_leaves} of {model.tree.n_leaves} leaves remain"]
    earlier = (each for each in model.notes if not each.startswith(("unpruned", "pruned by")))
    return dataclasses.replace(model, body=body, pruning=pruner_to_dict(pruner), notes=(*notes, *earlier))


def counts(tree: Tree, estimate: float | None) -> dict[str, Any]:
    """Return the size of a tree with its estimate."""
    return {"leaves": tree.n_leaves, "nodes": tree.n_nodes, "estimate": estimate}


def step_lines(
    model: Model, nodes: Array, rules: str | list[str], before: Any, after: Any, **further: list[Any]
) -> list[dict[str, Any]]:
    """Return an object for each step. A step replaces a node. `rules` is the reason for all steps, or has one per step.

    ``nodes_removed`` does not count the nodes that an earlier step removed.
    """
    tree, texts, listed = model.tree, BranchText(model), nodes.tolist()
    columns: dict[str, list[Any]] = {
        "node": listed,
        "attribute": [model.schema.attributes[place].name for place in tree.feature[nodes].tolist()],
        "reached_by": [texts.text(node) if node else "every row" for node in listed],
        "rule": [rules] * len(listed) if isinstance(rules, str) else rules,
        "before": np.asarray(before).tolist(),
        "after": np.asarray(after).tolist(),
        "weight": tree.weight[nodes].tolist(),
        "nodes_removed": _n_removed(tree, listed, further.get("raised")),
        **further,
    }
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def collapsed(tree: Tree, gone: Array) -> tuple[Tree, Places]:
    """Return the tree in which the nodes of `gone` are leaves, and the nodes that remain, in order."""
    mask = np.zeros(tree.n_nodes, dtype=np.bool_)
    mask[gone] = True
    return tree.collapsed(mask), tree.remaining(mask)


def notes_on_rows(model: Model, dataset: Dataset, *, in_parts: bool = True) -> dict[str, list[str]]:
    """Return the notes of a trace on the rows of `dataset`: ``{"notes": […]}``, or {} if there are none.

    `in_parts`: whether a row that reaches several leaves counts in parts, one for each leaf.
    """
    counted = dataset.weight > 0
    notes = notes_on_classes(model, dataset)
    if model.schema.weight is not None and dataset.schema.weight is None:
        notes.append(f"the rows have no weights ({model.schema.weight.name!r} is missing): each counts 1")
    unseen = unseen_rows(model, dataset) & counted
    if n_unseen := int(np.count_nonzero(unseen)):
        notes.append(f"{_rows(n_unseen, 'has', 'have')} a category that the model has not seen: it counts as missing")
    if n_blank := int(np.count_nonzero(_without_values(model, dataset) & counted & ~unseen)):
        what = "the rules test" if isinstance(model.body, RuleList) else "the tree tests"
        notes.append(f"{_rows(n_blank, 'has', 'have')} no value of any attribute that {what}")
    if in_parts:
        cells = encode_columns(model.schema, dataset, model.preparation.imputed)
        if several := int(np.count_nonzero((predict_batch(model, cells).leaves < 0) & counted)):
            verb = "counts" if several == 1 else "count"
            what = f"{_rows(several, 'goes', 'go')} down several branches and {verb} in parts"
            notes.append(f"{what} here, one per leaf; an evaluation counts each row as a whole, by its answer")
    return {"notes": notes} if notes else {}


def notes_on_classes(model: Model, dataset: Dataset) -> list[str]:
    """Return notes on rows whose class the model has not learned, and on learned classes that no row has."""
    if not model.schema.classes:
        return []
    target, learned, notes = target_of(model.schema, dataset)[dataset.weight > 0], _learned_classes(model), []
    # The schema may list classes that no training row has. A code below 0 reads the appended False.
    unknown = int(np.count_nonzero(~np.append(learned, False)[np.maximum(target, -1)]))
    if unknown:
        of = _rows(unknown, "is", "are")
        notes.append(f"{of} of a class that the model has not learned: every answer to them is an error")
    if len(target) and target[0] >= 0 and np.all(target == target[0]):
        name = model.schema.classes[int(target[0])]
        notes.append(f"all rows are of the class {name!r}: no figure shows how others are answered")
    elif absent := np.setdiff1d(np.flatnonzero(learned), target).tolist():
        names = listed((repr(model.schema.classes[code]) for code in absent), MAX_CLASSES_NAMED)
        if len(absent) == 1:
            notes.append(f"no row is of the class {names}, so no figure shows how it is answered")
        else:
            notes.append(f"no row is of {len(absent)} classes: {names}, so no figure shows how they are answered")
    return notes


def _n_removed(tree: Tree, nodes: list[int], raised: list[int | None] | None) -> list[int]:
    """Return how many nodes each step removed: all below its node, or all of the subtree but the raised branch."""
    stays = np.ones(tree.n_nodes, dtype=np.bool_)
    removed = []
    for node, branch in zip(nodes, raised or [None] * len(nodes), strict=True):
        # The node itself stays: it becomes a leaf, or takes the place of the branch's first node.
        below = stays[node + 1 : node + int(tree.size[node])]
        remaining = slice(0) if branch is None else slice(branch - node, branch - node - 1 + int(tree.size[branch]))
        n_before, left = np.count_nonzero(below), below[remaining].copy()
        below[:] = False
        below[remaining] = left
        removed.append(int(n_before - np.count_nonzero(left)))
    return removed


def _without_values(model: Model, dataset: Dataset) -> Mask:
    """Return for each row whether it has no value of any tested attribute; False if the model tests no attribute."""
    tested = tested_places(model)
    cells, column = encode_columns(model.schema, dataset, model.preparation.imputed), np.empty(dataset.n_rows)
    blank = np.full(dataset.n_rows, bool(tested))
    for attribute in tested:
        cells.write(attribute, 0, dataset.n_rows, column)
        blank &= column < 0 if model.schema.attributes[attribute].coded else np.isnan(column)
    return blank


def _learned_classes(model: Model) -> Mask:
    if isinstance(model.body, RuleList):
        # Every training row is counted in the statistics of one answer.
        return np.asarray(np.any([np.asarray(answer.stats) > 0 for answer in model.body.answers], axis=0))
    return np.asarray(model.tree.stats[0] > 0, dtype=np.bool_)


def _rows(number: int, singular: str, plural: str) -> str:
    return f"{number} row {singular}" if number == 1 else f"{number} rows {plural}"
