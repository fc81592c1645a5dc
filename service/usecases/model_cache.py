"""Cache of decoded models in one process; the least recently used one is dropped first."""

import threading

from cachetools import LRUCache, cached

import espalier
from service.repositories.models import LoadedVersion, load_version


class ModelCache:
    """Decoded models by version id, for any number of threads; concurrent callers decode a version once.

    A decoded tree takes about 0.8 KB per node, with its cached texts. A model counts with its nodes, but at least with
    its share of `max_models`; one with more than `max_nodes` is cached alone.
    """

    def __init__(self, *, max_models: int = 64, max_nodes: int = 1_500_000) -> None:
        def size(version: LoadedVersion) -> int:
            return min(max_nodes, max(max_nodes // max_models, n_nodes_of(version.model)))

        cache: LRUCache[str, LoadedVersion] = LRUCache(max_nodes, getsizeof=size)
        self.get = cached(cache, key=lambda _, version_id: version_id, condition=threading.Condition())(load_version)


def n_nodes_of(model: espalier.Model) -> int:
    """Return the number of nodes of a tree, or of rules and conditions."""
    if isinstance(model.body, espalier.RuleList):
        return sum(len(rule.conditions) + 1 for rule in model.body.rules)
    return model.tree.n_nodes
