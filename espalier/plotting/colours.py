"""Colours of a drawn tree. A class has the same colour in all pictures of a model.

If the reader prefers a dark scheme, all colours are replaced except those of classes and of standard deviations.
"""

from dataclasses import dataclass
from typing import Final

from espalier.model.model import Model
from espalier.model.texts import label_line
from espalier.plotting.escape import legal_text

COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7a5195")
"""Colours that most colour-blind readers can distinguish: seven of Okabe and Ito (2008), and a violet. If there are
more classes, those with the least weight share one more colour."""
OTHERS: Final = "#9aa1a9"
INK: Final = 'class="ink" fill="#1a1d21"'
CANVAS: Final = 'class="canvas" fill="#ffffff"'
EDGE: Final = 'class="edge" fill="none" stroke="#7d8793"'
PATH: Final = 'class="path" fill="none" stroke="#c2255c"'
BOX: Final = 'class="box edge" fill="#f3f5f8" stroke="#7d8793"'
BOX_ON_PATH: Final = 'class="box path" fill="#f3f5f8" stroke="#c2255c"'
SVG_STYLE: Final = (
    "@media (prefers-color-scheme:dark){"
    ".espalier-tree .canvas{fill:#15181d}"
    ".espalier-tree .ink{fill:#e9edf2}"
    ".espalier-tree .edge{stroke:#8d98a5}"
    ".espalier-tree .path{stroke:#ff6b9d}"
    ".espalier-tree .box{fill:#232830}}"
)
"""The style sheet in every picture: the colours for a reader's dark scheme. If the policy of a page allows no style,
the light colours stay legible on their white background."""


@dataclass(frozen=True, slots=True)
class Legend:
    """Classes and their colours.

    Attributes:
        codes: The classes with a separate colour, in the schema's order; empty for a regression.
        labels: Their names.
        colours: Their colours; if there are more classes, one more colour for all others.
        n_others: Number of the other classes.
    """

    codes: tuple[int, ...]
    labels: tuple[str, ...]
    colours: tuple[str, ...]
    n_others: int


def legend_of(model: Model) -> Legend:
    """Return the legend of a model: the heaviest classes at the root have separate colours, the others share one."""
    classes = model.schema.classes
    weights = model.tree.stats[0].tolist() if classes else []
    heaviest = sorted(range(len(classes)), key=lambda code: (-weights[code], code))[: len(COLOURS)]
    codes = tuple(sorted(heaviest))
    labels = tuple(legal_text(label_line(classes[code])) for code in codes)
    n_others = len(classes) - len(codes)
    return Legend(codes, labels, (*COLOURS[: len(codes)], *((OTHERS,) if n_others else ())), n_others)
