"""What is done to a row before the tree sees it, and by what values are measured; learned in training, kept."""

from dataclasses import dataclass

__all__ = ["Preparation", "Scale"]


@dataclass(frozen=True, slots=True)
class Scale:
    """By what the values of an attribute that is a number or a date are measured; no row's own value stands here.

    Attributes:
        span: From the least to the greatest training value, to two significant digits.
        middle: Half way between them, as roughly.
        step: What every training value was a multiple of: 1 (whole numbers; of a date seconds), 86400 (days of UTC), or
            0 where none of these.
    """

    span: float
    middle: float
    step: float


@dataclass(frozen=True, slots=True)
class Preparation:
    """Values learned from all training rows.

    Attributes:
        imputed: What stands in for a missing value, one an attribute: its mean or the code of its most frequent
            category (as a float; NaN where the attribute had no known value). None unless ``missing="imputed"``.
        scales: One an attribute, None for one of categories or without a value; None of a model that kept none.
    """

    imputed: tuple[float, ...] | None = None
    scales: tuple[Scale | None, ...] | None = None
