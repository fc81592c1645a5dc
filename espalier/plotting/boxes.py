"""What stands in each box of a picture, and on the line to it: texts cut to size, and the shares of the classes."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from espalier.explanation.branch_text import BranchWords, counted, cut
from espalier.explanation.steps import DecisionStep, value_text
from espalier.model.model import Model
from espalier.model.rules import label_line
from espalier.plotting.escape import legal_text
from espalier.plotting.legend import Legend
from espalier.plotting.lettering import LINE, text_width, wrapped
from espalier.plotting.selection import Box, Drawing
from espalier.prediction.tree_predictor import tree_predictor

HEAD: Final = 13.0
NOTE: Final = 12.0
"""Sizes of letters."""
PAD: Final = 9.0
"""Between the edge of a box and what is in it."""
BAR: Final = 8.0
"""Height of the bar of shares."""
WIDEST_TEXT: Final = 190.0
WIDEST_LABEL: Final = 150.0
NARROWEST: Final = 76.0
LONGEST_NAME: Final = 300
"""Characters of a name where all of it is told, to one who points at a box or has it read aloud."""
MOST_LISTED: Final = 12
"""Categories on one line that are tried before the rest is a number."""
EXACT: Final = 1e12
"""Larger numbers are written with six digits and an exponent."""
LEAST_SHARE: Final = 0.005

Floats = npt.NDArray[np.float64]
Words = tuple[str, list[str]]
"""The head of a box, and its notes."""


@dataclass(frozen=True, slots=True)
class Face:
    """What one box shows.

    Attributes:
        head: Lines in bold.
        notes: Lines below them.
        value: What the row has here, where its way is shown; "" elsewhere.
        shares: Of the legend's classes, the others last; none for a regression, and where no row is.
        spread: For a regression: the mean, and the standard deviation; None where no row is.
        label: Lines on the line that leads to the box.
        told: All of it in words.
        width: Of the box.
        height: Of the box.
    """

    head: tuple[str, ...]
    notes: tuple[str, ...]
    value: str
    shares: tuple[float, ...]
    spread: tuple[float, float] | None
    label: tuple[str, ...]
    told: str
    width: float
    height: float

    @property
    def label_width(self) -> float:
        """Width of the label."""
        return max((text_width(line, NOTE) for line in self.label), default=0.0)

    @property
    def label_height(self) -> float:
        """Height of the label."""
        return len(self.label) * NOTE * LINE


def faces(drawing: Drawing, legend: Legend) -> Iterator[Face]:
    """Return what each box shows, in the order of the boxes."""
    writer = _Writer(drawing, legend)
    return map(writer.face, drawing.boxes)


class _Writer:
    """The words of one drawing."""

    def __init__(self, drawing: Drawing, legend: Legend) -> None:
        self.drawing, self.model, self.legend = drawing, drawing.model, legend
        self.words = BranchWords(drawing.model)
        self.way = tree_predictor(drawing.model)
        paths = () if drawing.explanation is None else drawing.explanation.paths
        self.steps: Mapping[int, DecisionStep] = {step.node: step for path in paths for step in path}

    def face(self, box: Box) -> Face:
        """Write one box and measure it."""
        stats: Floats = self.model.tree.stats[list(box.nodes)]
        weight = math.fsum(self.way.weight[node] for node in box.nodes)
        step = self.steps.get(box.node)
        head, notes = HEADS[box.form](self, box, _weight_words(self.model, weight))
        value = "" if step is None else value_text(step)
        texts = _Texts.fitted(head, notes, value)
        shares = self._shares(stats, weight) if self.model.schema.classes else ()
        spread = None if self.model.schema.classes or len(stats) > 1 or weight <= 0 else self._spread(box.node)
        barred = BAR + PAD / 2 if shares or spread else 0.0
        return Face(
            head=texts.head,
            notes=texts.notes,
            value=texts.value,
            shares=shares,
            spread=spread,
            label=tuple(self._label(box)),
            told=self._told(box, head, notes, value, shares),
            width=math.ceil(texts.width + 2 * PAD),
            height=math.ceil(texts.height + barred + 2 * PAD),
        )

    def test(self, box: Box, weight: str) -> Words:
        """Name what is asked."""
        return self.words.attribute(box.node), [f"{weight} · {self._answer(box.node)}"]

    def leaf(self, box: Box, weight: str) -> Words:
        """Name the answer."""
        answer, linear = self.way.answers[box.node], self.way.linear
        if answer.value is not None:
            head = f"{answer.value:.6g}" if linear is None else f"LM{linear.numbers[box.node]}"
            return head, [f"{weight} ± {answer.std:.4g}"]
        errors = self.way.weight[box.node] - float(self.model.tree.stats[box.node, answer.code])
        wrong = f", {_number(errors)} {'error' if errors == 1 else 'errors'}" if round(errors, 4) > 0 else ""
        return label_line(answer.label if answer.label is not None else ""), [f"{weight}{wrong}"]

    def folded(self, box: Box, weight: str) -> Words:
        """Say how much is not shown, and where to find it."""
        leaves = counted(box.n_leaves, "leaf", "leaves")
        return f"{leaves} folded", [f"{weight} · {self._answer(box.node)}", f"node {box.node}"]

    def more(self, box: Box, weight: str) -> Words:
        """Say how many branches are not shown."""
        return f"{len(box.nodes):,} more branches", [f"{counted(box.n_leaves, 'leaf', 'leaves')} · {weight}"]

    def _answer(self, node: int) -> str:
        """Write what a node would answer, with its part of the rows: ``64 % Yes``."""
        answer = self.way.answers[node]
        if answer.value is not None:
            return f"{answer.value:.6g} ± {answer.std:.4g}"
        weights = self.model.tree.stats[node]
        total = math.fsum(weights)
        share = f"{_percent(float(weights[answer.code]) / total)} " if total > 0 else ""
        # The number first: behind a name in Arabic or Hebrew it would be read as a part of it.
        return f"{share}{label_line(answer.label if answer.label is not None else '')}"

    def _shares(self, stats: Floats, weight: float) -> tuple[float, ...]:
        """Return the legend's shares, the others' last."""
        if weight <= 0:
            return ()
        weights = stats.sum(axis=0)
        total = float(weights.sum())
        own = [float(weights[code]) / total for code in self.legend.codes]
        return (*own, max(0.0, 1 - math.fsum(own))) if self.legend.n_others else tuple(own)

    def _spread(self, node: int) -> tuple[float, float]:
        answer = self.way.answers[node]
        return answer.mean if answer.value is None else answer.value, answer.std or 0.0

    def _label(self, box: Box) -> list[str]:
        """Break what leads to a box into lines; of many categories, as many as there is room for."""
        if box.parent < 0:
            return []
        if box.node < 0:
            return ["other"]
        labels = self.words.categories(box.node)
        if labels is None:
            return wrapped(legal_text(self.words.label(box.node)), width=WIDEST_LABEL, size=NOTE, most=2)[0]
        lines, whole = [""], False
        for n_listed in range(min(len(labels), MOST_LISTED), 0, -1):
            listed = [legal_text(cut(label_line(label), LONGEST_NAME)) for label in labels[:n_listed]]
            rest = f" or {len(labels) - n_listed:,} more" if n_listed < len(labels) else ""
            lines, whole = wrapped(f"{' or '.join(listed)}{rest}", width=WIDEST_LABEL, size=NOTE, most=3)
            if whole:
                break
        return lines

    def _told(self, box: Box, head: str, notes: Sequence[str], value: str, shares: Sequence[float]) -> str:
        """Say all that a box shows in words, names in full."""
        where = "" if box.node < 0 else f"node {box.node}"
        if box.parent >= 0 and box.node >= 0:
            where = f"{where}, {cut(self.words.text(box.node), LONGEST_NAME)}"
        names = (*self.legend.labels, f"{self.legend.n_others} other classes")
        told = [
            f"{_percent(share)} {cut(name, LONGEST_NAME)}" for name, share in zip(names, shares, strict=False) if share
        ]
        asks = "asks " if box.form == "test" else "answers " if box.form == "leaf" else ""
        on_way = f"; on the way of the row{f', {value}' if value else ''}" if box.share else ""
        parts = [where, f"{asks}{cut(head, LONGEST_NAME)}", cut(notes[0], LONGEST_NAME), ", ".join(told)]
        return (
            f"{': '.join(part for part in parts[:2] if part)}; {'; '.join(part for part in parts[2:] if part)}{on_way}"
        )


HEADS: Final[Mapping[str, Callable[[_Writer, Box, str], Words]]] = {
    "test": _Writer.test,
    "leaf": _Writer.leaf,
    "folded": _Writer.folded,
    "more": _Writer.more,
}


@dataclass(frozen=True, slots=True)
class _Texts:
    """The lines of one box, and their room."""

    head: tuple[str, ...]
    notes: tuple[str, ...]
    value: str
    width: float
    height: float

    @classmethod
    def fitted(cls, head: str, notes: Sequence[str], value: str) -> "_Texts":
        """Break texts into lines that fit."""
        heads, _ = wrapped(legal_text(head), width=WIDEST_TEXT, size=HEAD, most=2, bold=True)
        lines = [line for note in notes for line in wrapped(legal_text(note), width=WIDEST_TEXT, size=NOTE, most=2)[0]]
        values = wrapped(legal_text(value), width=WIDEST_TEXT, size=NOTE, most=1, bold=True)[0] if value else []
        widths = [
            *(text_width(line, HEAD, bold=True) for line in heads),
            *(text_width(line, NOTE) for line in lines),
            *(text_width(line, NOTE, bold=True) for line in values),
        ]
        height = len(heads) * HEAD * LINE + (len(lines) + len(values)) * NOTE * LINE
        return cls(tuple(heads), tuple(lines), "".join(values), max(NARROWEST, *widths), height)


def _weight_words(model: Model, weight: float) -> str:
    """Write the weight of training rows: as rows, where each counts for one."""
    if model.schema.weight is None and weight == math.floor(weight):
        return f"{_number(weight)} {'row' if weight == 1 else 'rows'}"
    return f"weight {_number(weight)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == math.floor(value) and value < EXACT else f"{value:.6g}"


def _percent(share: float) -> str:
    """Write a share; all and nothing are said of all and nothing only."""
    if 0 < share < LEAST_SHARE:
        return "under 1 %"
    if 1 - LEAST_SHARE < share < 1:
        return "over 99 %"
    return f"{100 * share:.0f} %"
