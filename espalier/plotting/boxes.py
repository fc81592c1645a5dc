"""The content of each box of a drawn tree: texts that fit, shares of classes, and the label of the box's branch."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from espalier.arrays import Floats
from espalier.explanation.branch_and_leaf_text import BranchText, counted, cut
from espalier.explanation.steps import DecisionStep, value_text
from espalier.model.model import Model
from espalier.model.texts import label_line, weight_text
from espalier.plotting.colours import Legend
from espalier.plotting.escape import legal_text
from espalier.plotting.selection import Box, TreeView
from espalier.plotting.text_width import LINE, text_width, wrap_text
from espalier.prediction.answers import format_answer
from espalier.prediction.tree_predictor import tree_predictor

HEAD: Final = 13.0
"""Font size of the head of a box."""
NOTE: Final = 12.0
"""Font size of all other text."""
PAD: Final = 9.0
"""Space between the edge of a box and its content."""
BAR: Final = 8.0
"""Height of the bar of shares."""
MAX_TEXT_WIDTH: Final = 190.0
MAX_LABEL_WIDTH: Final = 150.0
MIN_WIDTH: Final = 76.0
MAX_NAME: Final = 300
"""Maximum number of characters of a name in a label, and in the description for tooltips and screen readers."""
MAX_LISTED: Final = 12
"""Maximum number of categories in a label; the others are counted."""
EXACT: Final = 1e12
"""Whole numbers below this are written in full, with separators of thousands."""
MIN_SHARE: Final = 0.005


@dataclass(frozen=True, slots=True)
class BoxContent:
    """The content of one box.

    Attributes:
        head: The tested attribute, the answer of a leaf, or what is folded, line by line.
        notes: Weight of the training rows, and the answer, errors, deviation, leaf count or node number, line by line.
        value: If the box is a test on the path of the row, the row's value, as in ``it is 85``; else "".
        shares: Shares of the legend's classes, then of all others together; empty for a regression, or without rows.
        spread: For a regression: the node's answer and standard deviation. None for a classification, for a node
            without rows, and for a box of several branches.
        label: The text beside the curve that leads to the box, line by line.
        description: The full content in words.
    """

    head: tuple[str, ...]
    notes: tuple[str, ...]
    value: str
    shares: tuple[float, ...]
    spread: tuple[float, float] | None
    label: tuple[str, ...]
    description: str

    @property
    def width(self) -> float:
        """Width of the widest line (at least `MIN_WIDTH`) plus the padding. The box is drawn as wide as its column."""
        head = (text_width(line, HEAD, bold=True) for line in self.head)
        notes = (text_width(line, NOTE) for line in self.notes)
        return math.ceil(max(MIN_WIDTH, *head, *notes, text_width(self.value, NOTE, bold=True)) + 2 * PAD)

    @property
    def height(self) -> float:
        """Height of the box."""
        notes = (len(self.notes) + bool(self.value)) * NOTE * LINE
        bar = BAR + PAD / 2 if self.shares or self.spread else 0.0
        return math.ceil(len(self.head) * HEAD * LINE + notes + bar + 2 * PAD)

    @property
    def label_width(self) -> float:
        """Width of the label."""
        return max((text_width(line, NOTE) for line in self.label), default=0.0)

    @property
    def label_height(self) -> float:
        """Height of the label."""
        return len(self.label) * NOTE * LINE


def box_contents(view: TreeView, legend: Legend) -> Iterator[BoxContent]:
    """Yield the content of each box, in the order of the boxes."""
    writer = _Writer(view, legend)
    return map(writer.content, view.boxes)


class _Writer:
    def __init__(self, view: TreeView, legend: Legend) -> None:
        self.view, self.model, self.legend = view, view.model, legend
        self.text_of = BranchText(view.model)
        self.predictor = tree_predictor(view.model)
        paths = () if view.explanation is None else view.explanation.paths
        self.steps: Mapping[int, DecisionStep] = {step.node: step for path in paths for step in path}

    def content(self, box: Box) -> BoxContent:
        stats: Floats = self.model.tree.stats[list(box.nodes)]
        weight = math.fsum(self.predictor.weight[node] for node in box.nodes)
        step = self.steps.get(box.node)
        head, notes = self._head_and_notes(box, _weight_text(self.model, weight))
        value = "" if step is None else value_text(step)
        shares = self._shares(stats, weight) if self.model.schema.classes else ()
        spread = None
        if not self.model.schema.classes and box.form != "more" and weight > 0:
            answer = self.predictor.answers[box.node]
            spread = answer.mean if answer.value is None else answer.value, answer.std or 0.0
        return BoxContent(
            head=_fitted([head], HEAD, most=2, bold=True),
            notes=_fitted(notes, NOTE, most=2),
            value="".join(_fitted([value], NOTE, most=1, bold=True)),
            shares=shares,
            spread=spread,
            label=tuple(self._label(box)),
            description=self._description(box, head, notes, value, shares),
        )

    def _head_and_notes(self, box: Box, weight: str) -> tuple[str, list[str]]:
        leaves = counted(box.n_leaves, "leaf", "leaves")
        if box.form == "more":
            return counted(len(box.nodes), "more branch", "more branches"), [f"{leaves} · {weight}"]
        if box.form == "folded":
            return f"{leaves} folded", [f"{weight} · {self._answer(box.node)}", f"node {box.node}"]
        if box.form == "test":
            return self.text_of.attribute(box.node), [f"{weight} · {self._answer(box.node)}"]
        answer, linear = self.predictor.answers[box.node], self.predictor.linear
        head = format_answer(answer) if linear is None else f"LM{linear.numbers[box.node]}"
        if answer.value is not None:
            return head, [f"{weight} ± {answer.std:.4g}"]
        errors = self.predictor.weight[box.node] - float(self.model.tree.stats[box.node, answer.code])
        wrong = f", {_number(errors)} {'error' if errors == 1 else 'errors'}" if round(errors, 4) > 0 else ""
        return head, [f"{weight}{wrong}"]

    def _answer(self, node: int) -> str:
        """Return the share and the name of a node's class, ``64 % Yes``, or its value and deviation, ``3 ± 0.2``."""
        answer = self.predictor.answers[node]
        if answer.value is not None:
            return f"{format_answer(answer)} ± {answer.std:.4g}"
        weights = self.model.tree.stats[node]
        total = math.fsum(weights)
        share = f"{_percent(float(weights[answer.code]) / total)} " if total > 0 else ""
        # The number is first, because after a name in Arabic or Hebrew it would be shown as a part of the name.
        return f"{share}{format_answer(answer)}"

    def _shares(self, stats: Floats, weight: float) -> tuple[float, ...]:
        if weight <= 0:
            return ()
        weights = stats.sum(axis=0)
        total = float(weights.sum())
        own = [float(weights[code]) / total for code in self.legend.codes]
        return (*own, max(0.0, 1 - math.fsum(own))) if self.legend.n_others else tuple(own)

    def _label(self, box: Box) -> list[str]:
        """Break the label of a branch into lines, with as many of its categories as fit."""
        if box.parent < 0:
            return []
        if box.node < 0:
            return ["other"]
        labels = self.text_of.categories(box.node)
        if labels is None:
            return wrap_text(legal_text(self.text_of.label(box.node)), width=MAX_LABEL_WIDTH, size=NOTE, most=2)[0]
        lines, whole = [""], False
        for n_listed in range(min(len(labels), MAX_LISTED), 0, -1):
            listed = [legal_text(cut(label_line(label), MAX_NAME)) for label in labels[:n_listed]]
            rest = f" or {len(labels) - n_listed:,} more" if n_listed < len(labels) else ""
            lines, whole = wrap_text(f"{' or '.join(listed)}{rest}", width=MAX_LABEL_WIDTH, size=NOTE, most=3)
            if whole:
                break
        return lines

    def _description(self, box: Box, head: str, notes: Sequence[str], value: str, shares: Sequence[float]) -> str:
        where = "" if box.node < 0 else f"node {box.node}"
        if box.parent >= 0 and box.node >= 0:
            where = f"{where}, {cut(self.text_of.text(box.node), MAX_NAME)}"
        names = (*self.legend.labels, f"{self.legend.n_others} other classes")
        description = [
            f"{_percent(share)} {cut(name, MAX_NAME)}" for name, share in zip(names, shares, strict=False) if share
        ]
        verb = "tests " if box.form == "test" else "answers " if box.form == "leaf" else ""
        on_path = f"; on the path of the row{f', {value}' if value else ''}" if box.share else ""
        parts = [where, f"{verb}{cut(head, MAX_NAME)}", cut(notes[0], MAX_NAME), ", ".join(description)]
        return (
            f"{': '.join(part for part in parts[:2] if part)}; {'; '.join(part for part in parts[2:] if part)}{on_path}"
        )


def _fitted(texts: Sequence[str], size: float, *, most: int, bold: bool = False) -> tuple[str, ...]:
    wrapped = (wrap_text(legal_text(text), width=MAX_TEXT_WIDTH, size=size, most=most, bold=bold)[0] for text in texts)
    return tuple(chain.from_iterable(wrapped))


def _weight_text(model: Model, weight: float) -> str:
    """Return the weight of training rows as text; as a number of rows if it is whole and the rows have no weights."""
    has_weights = model.schema.weight is not None or model.config.class_weight is not None
    if not has_weights and weight == math.floor(weight):
        return f"{_number(weight)} {'row' if weight == 1 else 'rows'}"
    return f"weight {_number(weight)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == math.floor(value) and value < EXACT else weight_text(value)


def _percent(share: float) -> str:
    """Return a share as a percentage; 0 % and 100 % stand for exactly none and exactly all."""
    if 0 < share <= MIN_SHARE:
        return "under 1 %"
    if 1 - MIN_SHARE <= share < 1:
        return "over 99 %"
    return f"{100 * share:.0f} %"
