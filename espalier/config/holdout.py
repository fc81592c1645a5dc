"""The rows that are held out of training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from espalier.config.parameter_constraints import MAX_SEED, Integer
from espalier.data.number_parsing import is_number
from espalier.errors import ConfigError, Fault, pointer

NATURAL: Final = Integer(0, MAX_SEED)
"""The legal seeds and row numbers."""


@dataclass(frozen=True, slots=True)
class Holdout:
    """The rows that are held out of training: a random share, or a list of rows.

    Attributes:
        fraction: Share of the rows that is drawn at random, above 0 and below 1; None if `rows` is given.
        seed: Seed of the random draw.
        stratified: Whether the same share of each class is drawn. Without classes, this changes nothing.
        rows: Numbers of the rows, counted from 0; None if `fraction` is given.
    """

    fraction: float | None = None
    seed: int = 0
    stratified: bool = True
    rows: tuple[int, ...] | None = None


def holdout_from_dict(document: Mapping[str, Any]) -> Holdout:
    """Read ``{"fraction", "seed", "stratified"}`` or ``{"rows"}``; seed is 0 and stratified true by default.

    Raises:
        ConfigError: The object is not legal; each fault has its path.
    """
    legal = 'must be {"fraction": 0.3, "seed": 1, "stratified": true} or {"rows": [0, 5, …]}'
    if not isinstance(document, Mapping) or ("fraction" in document) == ("rows" in document):
        raise ConfigError([Fault("", "wrong_type", legal)])
    fraction: Any = document.get("fraction")
    rows: Any = document.get("rows")
    rows = rows.tolist() if hasattr(rows, "tolist") else rows  # an array
    checks: dict[str, tuple[bool, str]] = {
        "fraction": (is_number(fraction) and 0 < fraction < 1, "must be a number above 0 and below 1"),
        "seed": (NATURAL.test(document.get("seed", 0)), f"must be {NATURAL.text}"),
        "stratified": (isinstance(document.get("stratified", True), bool), "must be true or false"),
        "rows": (
            isinstance(rows, list | tuple) and all(map(NATURAL.test, rows)) and 0 < len(rows) == len(set(rows)),
            "must be a list of different row numbers, at least one, counted from 0",
        ),
    }
    allowed = ("rows",) if "rows" in document else ("fraction", "seed", "stratified")
    faults = [Fault(pointer(str(name)), "unknown_field", legal) for name in document if name not in allowed]
    faults += [Fault(f"/{name}", "not_legal", checks[name][1]) for name in allowed if not checks[name][0]]
    ConfigError.raise_for(faults)
    if "rows" in document:
        return Holdout(rows=tuple(map(int, rows)))
    return Holdout(float(document["fraction"]), int(document.get("seed", 0)), document.get("stratified", True))


def holdout_to_dict(holdout: Holdout) -> dict[str, Any]:
    """Return the JSON form that `holdout_from_dict` reads."""
    if holdout.rows is not None:
        return {"rows": list(holdout.rows) if isinstance(holdout.rows, tuple) else holdout.rows}
    return {"fraction": holdout.fraction, "seed": holdout.seed, "stratified": holdout.stratified}
