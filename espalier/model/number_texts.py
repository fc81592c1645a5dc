"""Numbers, weights, shares and thresholds as text for people."""

import math

from espalier.data.instants import latest_instant_text
from espalier.data.labels import Label
from espalier.data.schema import Feature, FeatureKind
from espalier.model.name_texts import label_line


def number_text(value: float) -> str:
    """Return the shortest text that is read as exactly this number, so that a printed rule is the applied rule.

    >>> number_text(14.6155), number_text(3.0), number_text(14.838999999999999)
    ('14.6155', '3', '14.838999999999999')
    """
    return repr(float(value)).removesuffix(".0")


def weight_text(weight: float) -> str:
    """Return a weight with at most four decimals, or with four significant digits if these decimals would be 0."""
    text = f"{weight:.4f}".rstrip("0").rstrip(".")
    return text if text != "0" else f"{weight:.4g}"


def share_text(share: float) -> str:
    """Return a share with four significant digits, or with as many as distinguish it from 1.

    >>> share_text(2 / 3), share_text(1.0), share_text(0.99996)
    ('0.6667', '1', '0.99996')
    """
    digits = 4
    while (text := f"{share:.{digits}g}") == "1" and share != 1.0:
        digits += 1
    return text


def shown_bound(feature: Feature, bound: float) -> Label:
    """Return a threshold as shown to people: a number, the last category at or below it, or a date."""
    if feature.kind is FeatureKind.ORDINAL:
        return feature.categories[max(0, min(math.floor(bound), len(feature.categories) - 1))]
    if feature.kind is FeatureKind.DATETIME:
        return latest_instant_text(bound)
    return bound


def bound_text(feature: Feature, bound: float) -> str:
    """Return a threshold as text."""
    shown = shown_bound(feature, bound)
    return number_text(shown) if isinstance(shown, float) else label_line(shown)
