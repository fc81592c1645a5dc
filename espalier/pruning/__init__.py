"""Post-pruning: each method a function from a model and its parameters to a new model and a trace."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from espalier.config import ReducedError
from espalier.dataset import Dataset
from espalier.model import Model
from espalier.pruning.reduced_error import prune_reduced_error
from espalier.pruning.trace import Pruned

__all__ = ["PRUNING_FUNCTIONS", "Pruned"]

PruningFunction = Callable[[Model, Any, Dataset], Pruned]

PRUNING_FUNCTIONS: Final[Mapping[type, PruningFunction]] = MappingProxyType({ReducedError: prune_reduced_error})
"""What to call, by the class of the parameters."""
