"""A trained model with its schema, configuration and training record."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import espalier  # its plots are imported only when a notebook first draws a model
from espalier.config.holdout import Holdout
from espalier.config.training_parameters import TrainingConfig
from espalier.data.schema import Schema
from espalier.errors import NotApplicable
from espalier.model.linear import LinearModels
from espalier.model.operating_point import OperatingPoint
from espalier.model.preparation import Preparation
from espalier.model.rules import RuleList
from espalier.model.tree import Tree, field_state


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """The record of how a model was made.

    Attributes:
        n_rows: Number of rows of the data set, held-out rows included.
        n_training_rows: Number of rows that the tree was grown from.
        fingerprint: Fingerprint of the data set; empty for an imported model.
        holdout: How the held-out rows were chosen; None if there were none, or if they were another data set.
        train: Figures on the training rows: ``n_rows``; if known, ``errors`` and ``accuracy``, or ``rmse`` and ``mae``.
        held_out: The same figures on the held-out rows; None if there are none.
        held_out_use: None without held-out rows. ``validation`` if held-out rows of the same data set were used to grow
            or prune this model or an earlier model from which this model was made; otherwise ``holdout``.
        asked: Fingerprints of the data sets whose held-out rows were used as ``validation``.
        backfitted: Fingerprints of the data sets whose held-out rows were added to the leaves (``backfit``). These
            rows are training rows now, and cannot be used for validation again.
        divided: Whether a training row may be divided among several leaves. If so, the training figures do not follow
            from the statistics of the leaves. None if the strategy divides no row, and in older records.
    """

    n_rows: int
    n_training_rows: int
    fingerprint: str
    holdout: Holdout | None
    train: Mapping[str, float]
    held_out: Mapping[str, float] | None = None
    held_out_use: str | None = None
    asked: tuple[str, ...] = ()
    backfitted: tuple[str, ...] = ()
    divided: bool | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """An immutable trained model.

    Attributes:
        schema: The columns of the training data. Rows to predict have values for the attributes among them.
        config: How the model was grown and, in training, pruned. Each field has the value used, even a default.
        preparation: Imputed values, and scales of the attributes.
        body: A tree, or a list of rules.
        training: The training record.
        pruning: Method and parameters of the last pruning, in training or later, as JSON; None if there was none.
        notes: Remarks for people, such as that the tree is unpruned.
        operating_point: Decides which class is predicted. None: the class with the largest share is predicted.
        missing: The strategy for missing values that `with_missing_strategy` chose; None: the one in `config` is used.
        trained: The trained model this one is derived from, if any. A derived model cannot be pruned or stored as JSON.
    """

    schema: Schema
    config: TrainingConfig
    preparation: Preparation
    body: Tree | RuleList
    training: TrainingRecord
    pruning: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    operating_point: OperatingPoint | None = None
    missing: str | None = None
    trained: "Model | None" = None

    def __repr__(self) -> str:
        size = f"{self.body.n_rules} rules" if isinstance(self.body, RuleList) else f"{self.body.n_leaves} leaves"
        attributes = f"{len(self.schema.attributes)} attributes"
        target = "" if self.schema.target is None else f" of {self.schema.target.name!r}"
        return f"<Model: {self.config.preset}, {self.task}{target}, {size}, {attributes}, {self.training.n_rows} rows>"

    def _repr_html_(self) -> str:
        """Draw the tree, or list the rules, in a notebook."""
        if isinstance(self.body, RuleList):
            return f"<pre>{escape(espalier.to_text(self))}</pre>"
        return espalier.to_svg(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only: cached results are computed again after unpickling."""
        return field_state(self)

    @property
    def missing_strategy(self) -> str:
        """The strategy with which the model answers rows that have missing values."""
        return self.missing or self.config.missing

    @property
    def task(self) -> str:
        """``classification`` or ``regression``."""
        return str(self.schema.task)

    @property
    def tree(self) -> Tree:
        """The tree.

        Raises:
            NotApplicable: The model is a list of rules.
        """
        if not isinstance(self.body, Tree):
            raise NotApplicable("the model is a list of rules: a tree is needed, such as the one they were made from")
        return self.body

    @property
    def linear(self) -> LinearModels | None:
        """The linear models of the tree's nodes; None if leaves are constants or the model is a list of rules."""
        return self.body.linear if isinstance(self.body, Tree) else None

    @property
    def rules(self) -> RuleList:
        """The list of rules.

        Raises:
            NotApplicable: The model is a tree.
        """
        if not isinstance(self.body, RuleList):
            raise NotApplicable("the model is a tree: extract its rules first")
        return self.body
