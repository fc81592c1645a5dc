"""The levels of a training as files of a folder, so that an interrupted training can continue after the last level."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np

from espalier.arrays import Array
from espalier.data.stored_dataset import full_disk_refused
from espalier.growing.levels.marks import BranchVector, Level, Mark, Subtree
from espalier.growing.levels.work_files import ENDING

PATTERN: Final = "level-*.npz"
VECTOR_KINDS: Final = (np.uint8, np.int8, np.int32)
"""Types of the array of a `BranchVector`; an array of uint8 holds bits."""
MARK: Final = ("node_ints", "node_reals", "ints", "reals", "stats", "codes", "weights", "n_rows", "vector", "shape")
SUBTREE: Final = ("ints", "reals", "stats", "codes")


def save_level(folder: Path, number: int, level: Level) -> None:
    """Write a level to a file. The file gets its final name when it is complete.

    Raises:
        DataError: The disk is full.
    """
    marks, subtrees = list(map(_of_mark, level.marks.values())), list(level.subtrees.values())
    arrays: dict[str, Any] = {
        "places": np.array(list(level.marks), np.int64),
        "subtree_places": np.array(list(level.subtrees), np.int64),
    }
    arrays["known"] = np.array([mark.known_weight for mark in level.marks.values()])
    for at, name in enumerate(MARK):
        arrays |= _joined(f"mark_{name}", [mark[at] for mark in marks])
    for name in SUBTREE:
        arrays |= _joined(f"subtree_{name}", [getattr(subtree, name) for subtree in subtrees])
    path = _path(folder, number)
    unfinished = path.with_suffix(ENDING)
    with full_disk_refused():
        with unfinished.open("wb") as file:
            np.savez(file, **arrays)
        unfinished.replace(path)


def load_levels(folder: Path) -> list[Level]:
    """Return the levels before the first file that a power loss has damaged. Delete this file and all later ones."""
    levels: list[Level] = []
    paths = sorted(folder.glob(PATTERN))
    for number in range(len(paths)):
        try:
            levels.append(load_level(folder, number))
        except (BadZipFile, EOFError, KeyError, ValueError):
            for path in paths[number:]:
                path.unlink()
            break
    return levels


def load_level(folder: Path, number: int) -> Level:
    """Read a level from a folder."""
    with _path(folder, number).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        marks = [_parts(arrays, f"mark_{name}") for name in MARK]
        subtrees = [_parts(arrays, f"subtree_{name}") for name in SUBTREE]
        places, known = arrays["places"].tolist(), arrays["known"].tolist()
        of_place = [_mark(each, weight) for each, weight in zip(zip(*marks, strict=True), known, strict=True)]
        return Level(
            dict(zip(places, of_place, strict=True)),
            dict(
                zip(
                    arrays["subtree_places"].tolist(),
                    (Subtree(*each) for each in zip(*subtrees, strict=True)),
                    strict=True,
                )
            ),
        )


def _path(folder: Path, number: int) -> Path:
    return folder / PATTERN.replace("*", f"{number:05d}")


def _of_mark(mark: Mark) -> tuple[Array, ...]:
    vector = mark.vector
    shape = np.array([vector.n_rows, VECTOR_KINDS.index(vector.packed.dtype.type)], np.int64)
    return (
        *mark.node, *mark.children, mark.codes, mark.weights, mark.n_rows, vector.packed.view(np.uint8), shape
    )  # fmt: skip


def _mark(arrays: Sequence[Array], known_weight: float) -> Mark:
    node_ints, node_reals, ints, reals, stats, codes, weights, n_rows, packed, shape = arrays
    n_branch_rows, kind = shape.tolist()
    vector = BranchVector(n_branch_rows, packed.view(VECTOR_KINDS[kind]))
    return Mark((node_ints, node_reals), (ints, reals, stats), codes, weights, known_weight, n_rows, vector)


def _joined(name: str, parts: list[Array]) -> dict[str, Array]:
    lengths = np.array([len(part) for part in parts], np.int64)
    return {name: np.concatenate(parts) if parts else np.zeros(0), f"{name}_lengths": lengths}


def _parts(arrays: Any, name: str) -> list[Array]:
    lengths = arrays[f"{name}_lengths"]
    return np.split(arrays[name], np.cumsum(lengths)[:-1]) if len(lengths) else []
