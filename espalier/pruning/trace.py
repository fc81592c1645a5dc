"""What a pruning gives: the new model, and the account of what went and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from espalier.model import Model

__all__ = ["Pruned"]


@dataclass(frozen=True, slots=True)
class Pruned:
    """A pruned model with its trace.

    Attributes:
        model: The new model; its parent is unchanged.
        trace: JSON: ``method``, ``parameters``, ``before`` and ``after`` (leaves, nodes, and the estimate that was
            optimised), and ``steps``: a line a node that became a leaf, in the order in which it happened, numbered as
            in the parent's tree.
    """

    model: Model
    trace: Mapping[str, Any]
