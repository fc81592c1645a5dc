"""Operating points: a class is predicted if its share reaches a given probability, even if another share is larger."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from espalier.arrays import Floats, Ints
from espalier.data.labels import class_code, legal_classes
from espalier.data.number_parsing import is_number
from espalier.errors import ConfigError, Fault, pointer

FIELDS: Final = ("label", "probability")


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A class that is predicted if and only if its share reaches a probability or there is no other class.

    Attributes:
        code: Index of the class in the schema's classes.
        probability: The smallest share for which the class is predicted, 0 to 1.
    """

    code: int
    probability: float

    def decide(self, shares: Sequence[float]) -> int:
        """Return the code of the predicted class: `code` or, of the other classes, the first with the largest share.

        >>> OperatingPoint(code=2, probability=0.25).decide([0.5, 0.3, 0.2])
        0
        >>> OperatingPoint(code=2, probability=0.2).decide([0.5, 0.3, 0.2])
        2
        """
        if shares[self.code] >= self.probability or len(shares) == 1:
            return self.code
        return max((code for code in range(len(shares)) if code != self.code), key=shares.__getitem__)

    def decide_each(self, shares: Floats) -> Ints:
        """Return the predicted class of each row of `shares`, float64 (rows, classes). The result is int32 (rows)."""
        if shares.shape[1] == 1:
            return np.zeros(len(shares), np.int32)
        others = shares.copy()
        others[:, self.code] = -1.0
        decided = np.where(shares[:, self.code] >= self.probability, self.code, others.argmax(axis=1))
        return decided.astype(np.int32)


def operating_point_from_dict(document: object, classes: Sequence[Any]) -> OperatingPoint:
    """Read an operating point from its JSON form, ``{"label": …, "probability": …}``.

    Args:
        document: The JSON form.
        classes: Classes of the model.

    Raises:
        ConfigError: The document is not an object, a field is missing or unknown, the label is not a class, or the
            probability is not a number from 0 to 1. The error has all faults.

    >>> operating_point_from_dict({"label": "yes", "probability": 0.3}, ("no", "yes")).code
    1
    """
    if not isinstance(document, dict):
        raise ConfigError([Fault("", "wrong_type", 'must be an object such as {"label": "yes", "probability": 0.3}')])
    faults = [
        Fault(pointer(name), "unknown_field", f"there is no such field; legal: {', '.join(FIELDS)}")
        for name in document
        if name not in FIELDS
    ]
    faults += [Fault(f"/{name}", "required", "must be given") for name in FIELDS if name not in document]
    label: Any = document.get("label")
    probability: Any = document.get("probability")
    code = class_code(classes, label)
    if "label" in document and code is None:
        legal = legal_classes(classes) if classes else "the model answers with a number"
        faults.append(Fault("/label", "unknown_value", legal))
    if "probability" in document and not (is_number(probability) and 0 <= probability <= 1):
        faults.append(Fault("/probability", "not_legal", "must be a number from 0 to 1"))
    if faults or code is None:
        raise ConfigError(faults)
    return OperatingPoint(code, float(probability))
