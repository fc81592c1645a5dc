"""What is done to a row before the tree sees it; learned in training, kept with the model."""

from dataclasses import dataclass

__all__ = ["Preparation"]


@dataclass(frozen=True, slots=True)
class Preparation:
    """Values learned from all training rows.

    Attributes:
        imputed: What stands in for a missing value, one an attribute: its mean or the code of its most frequent
            category (as a float; NaN where the attribute had no known value). None unless ``missing="imputed"``.
    """

    imputed: tuple[float, ...] | None = None
