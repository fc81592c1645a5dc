"""What the leaves of a model answer, each worked out and written down when it is first asked for."""

import zlib
from collections.abc import Collection, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

import numpy as np
import orjson

import espalier

__all__ = ["LeafBook", "book_of", "compressed"]

MOST_LEAVES: Final = 100_000
"""Whose answers a book keeps."""
MOST_TAILS: Final = 20_000
"""Of one form that it keeps: one may be thousands of signs long."""
MOST_IN_BLOCK: Final = 256
"""Leaves that a record names whether or not they answered."""


class LeafBook:
    """What the leaves of a model answer."""

    def __init__(self, model: espalier.Model) -> None:
        self._model = ref(model)  # not the model itself, which would then live as long as what is kept for it
        self._answers: dict[int, tuple[dict[str, Any], tuple[int, ...]]] = {}
        self._rules: dict[int, str] = {}
        self._tails: dict[str, dict[tuple[int, bytes], str]] = {}
        self._block: tuple[frozenset[int], bytes] | None = None

    def answer(self, leaf: int) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Give what a leaf answers a row that it answers alone, without flags, and the nodes on the way to it."""
        found = self._answers.get(leaf)
        if found is None:
            if len(self._answers) >= MOST_LEAVES:
                self._answers.clear()
            prediction = espalier.leaf_prediction(self._held(), leaf)
            document = prediction.to_dict()
            del document["flags"]
            found = self._answers[leaf] = document, prediction.nodes
        return found

    def rule(self, leaf: int) -> str:
        """Give the sentence of a leaf."""
        found = self._rules.get(leaf)
        if found is None:
            if len(self._rules) >= MOST_TAILS:
                self._rules.clear()
            model = self._held()
            found = self._rules[leaf] = espalier.rule_of(model, espalier.leaf_prediction(model, leaf))
        return found

    def tails(self, form: str) -> dict[tuple[int, bytes], str]:
        """Give what was written of leaves in one form; empty at first, and again when it has grown too large."""
        found = self._tails.setdefault(form, {})
        if len(found) >= MOST_TAILS:
            found.clear()
        return found

    def block(self, leaves: Collection[int]) -> bytes | None:
        """Give what all leaves of a small tree answer, compressed; None of a large one, or if one of `leaves` is none.

        A row may stop above the leaves.
        """
        if self._block is None:
            body = self._held().body
            few: list[int] = []
            if not isinstance(body, espalier.RuleList) and body.n_leaves <= MOST_IN_BLOCK:
                few = np.flatnonzero(np.diff(body.child_start) == 0).tolist()
            self._block = frozenset(few), compressed({leaf: self.answer(leaf) for leaf in few})
        held, content = self._block
        return content if held.issuperset(leaves) else None

    def _held(self) -> espalier.Model:
        model = self._model()
        assert model is not None  # noqa: S101 - whoever asks the book holds the model
        return model


_BOOKS: WeakKeyDictionary[espalier.Model, LeafBook] = WeakKeyDictionary()


def book_of(model: espalier.Model) -> LeafBook:
    """Give the book of a model, begun on first use and kept as long as the model."""
    found = _BOOKS.get(model)
    if found is None:
        found = _BOOKS[model] = LeafBook(model)
    return found


def compressed(document: Mapping[Any, Any]) -> bytes:
    """Give JSON, compressed a little."""
    return zlib.compress(orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS), 1)
