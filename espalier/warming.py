"""Compiling before anybody waits: small trainings and prunings that between them call every kernel.

Where the package's folder may be written, the machine code stays there for every later process: so an image is made.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import espalier
from espalier.config.holdout import Holdout
from espalier.data.dataset import Dataset
from espalier.data.readers.python import dataset_from_columns
from espalier.evaluation.metrics import evaluate
from espalier.small_work import always_compiled
from espalier.training.train import prune, train

Prunings = tuple[tuple[str, Mapping[str, Any]], ...]

FEW_ROWS: Final = 1_500  # too many values for a column of bytes, and enough rows to be answered by compiled code
MANY_ROWS: Final = 30_000  # enough that one node is split by several threads (`growing.parallel`)
HELD_OUT: Final = Holdout(fraction=0.3)
COLOURS: Final = ("red", "green", "blue", "grey")
LETTERS: Final = ("a", "b", "c")
REDUCED: Final[Prunings] = (("reduced_error", {}), ("reduced_error", {"order": "greedy"}))
BY_PRICE: Final[Prunings] = (("cost_complexity", {"alpha": 0.01}), ("cost_complexity", {"select": "cv", "folds": 2}))
RULES: Final[Prunings] = (("rules", {}),)
TO_LEAVES: Final[Prunings] = (("pessimistic", {"raising": False}),)


@dataclass(frozen=True, slots=True)
class Course:
    """One training, what is pruned after it, and on what.

    Attributes:
        preset: Of the training; fields: what is changed in it.
        answer: "classes" or "numbers".
        missing: Whether a tenth of the cells is missing; nominal: whether there is an attribute of four categories.
        n_rows: Of the data set.
        prunings: Method and parameters of each.
    """

    preset: str
    answer: str
    missing: bool = False
    nominal: bool = False
    n_rows: int = FEW_ROWS
    fields: Mapping[str, Any] = field(default_factory=dict)
    prunings: Prunings = ()

    def take(self) -> None:
        """Train, prune, answer."""
        dataset = _dataset(self)
        model = train(dataset, self.preset, holdout=HELD_OUT, **self.fields)
        for method, params in self.prunings:
            evaluate(prune(model, method, dataset=dataset, **params).model, dataset)


# Names of what takes about as long; between them no two compile the same for long, so that each may have a process.
WARM_UPS: Final[Mapping[str, Sequence[Course]]] = MappingProxyType(
    {
        "rare": (
            Course(
                "cart",
                "classes",
                missing=True,
                nominal=True,
                n_rows=MANY_ROWS,
                fields={"missing": "surrogate"},
            ),
        ),
        "usual": (
            Course("cart", "classes", n_rows=MANY_ROWS, prunings=(*REDUCED, *BY_PRICE)),
            Course("cart", "numbers", n_rows=MANY_ROWS, prunings=(*REDUCED, *BY_PRICE)),
            Course("cart", "classes", missing=True, nominal=True, prunings=RULES),
            Course("cart", "numbers", missing=True, nominal=True, fields={"missing": "fractional"}, prunings=RULES),
            Course("c45", "classes", missing=True, nominal=True, n_rows=MANY_ROWS, prunings=TO_LEAVES),
            Course("c45", "classes"),
            Course("j48", "classes", missing=True, nominal=True),
            Course("reptree", "classes", missing=True, nominal=True),
            Course("reptree", "numbers", missing=True, nominal=True),
            Course("m5", "numbers", missing=True, nominal=True),
            Course("id3", "classes", nominal=True, fields={"numeric": "best"}),
        ),
    }
)
"""What `warm_up` does, by name: "rare" is what no preset asks for by itself, "usual" is everything else."""


@dataclass(frozen=True, slots=True)
class CompiledCode:
    """What is kept of the machine code of kernels.

    Attributes:
        folder: Below which it is written; None where nowhere can be.
        n_kernels: Compiled functions that are found again, there and in the folders that are only read.
    """

    folder: Path | None
    n_kernels: int


def compiled_code() -> CompiledCode:
    """Look at what is compiled already; nothing is compiled, written or made.

    >>> from espalier import compiled_code
    >>> compiled_code().n_kernels >= 0
    True
    """
    from espalier.kernels.kept import kept_code  # noqa: PLC0415 - as below

    folder, n_kernels = kept_code()
    return CompiledCode(folder, n_kernels)


def warm_up(names: Iterable[str] = tuple(WARM_UPS)) -> Path | None:
    """Compile all kernels now, about a minute of a processor.

    Args:
        names: Of `WARM_UPS`; several processes may share them.

    Returns:
        The folder where later processes find the machine code; None where none can be written.

    >>> from espalier import warm_up
    >>> folder = warm_up([])
    """
    from espalier.growing.kernels import general_tree  # noqa: PLC0415 - numba is loaded where it is needed, not before
    from espalier.kernels import kept  # noqa: PLC0415 - numba is loaded where it is needed, not before

    for name in names:
        for course in WARM_UPS[name]:
            with always_compiled():
                course.take()
    folder = kept.cache_folder(Path(general_tree.__file__))
    return None if folder is None else folder.parent


def load_all() -> None:
    """Import everything public at once, so that nothing is imported while a request or a job waits.

    numba and pyarrow are loaded by the first work that needs them, all the same; see `espalier.warm_up`. The
    estimators are left out: scikit-learn may not be installed.
    """
    for name in dir(espalier):
        if name not in {"TreeClassifier", "TreeRegressor"}:
            getattr(espalier, name)


def _dataset(course: Course) -> Dataset:
    """Make a table with a target that has to do with its attributes, of as many rows as the course asks for."""
    draw = random.Random(1)  # noqa: S311 - a table, no secret
    n_rows = course.n_rows
    columns: dict[str, list[Any]] = {
        "size": [draw.random() * 100 for _ in range(n_rows)],
        "count": [float(draw.randrange(9)) for _ in range(n_rows)],
        "is_old": [draw.choice(("yes", "no")) for _ in range(n_rows)],
    }
    if course.nominal:
        columns["colour"] = [draw.choice(COLOURS) for _ in range(n_rows)]
    known = zip(columns["size"], columns["count"], strict=True)
    sums = [size / 50 + count / 9 + draw.random() for size, count in known]
    if course.missing:
        columns = {name: [None if draw.random() < 0.1 else cell for cell in cells] for name, cells in columns.items()}
    columns["answer"] = sums if course.answer == "numbers" else [LETTERS[min(2, int(each))] for each in sums]
    return dataset_from_columns(columns, target="answer")
