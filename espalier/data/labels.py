"""Labels of categories: their texts, their order, and labels that stand for a category of another type.

Labels keep their JSON type: ``1``, ``1.0``, ``"1"`` and ``true`` are four different categories if one column has them
all. Not every format has every type. So a label that is not itself a category may stand for a category of another type,
such as ``1`` for ``"1"``: see `category_codes`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from espalier.data.number_parsing import is_number, number_from_text
from espalier.errors import listed

Label = str | int | float | bool

NUMBER_STARTS: Final = frozenset("-0123456789")
WHOLE_NUMBER: Final = re.compile(r"-?[1-9][0-9]{15,300}")
NOT_TEXT: Final = "must not hold NUL or lone surrogates"
NO_TEXT: Final = re.compile(r"[\x00\ud800-\udfff]")
"""Characters that no name and no category may have. Not every database accepts NUL; UTF-8 has no lone surrogates."""
MAX_INTEGER: Final = 2**53
"""JSON readers may round larger whole numbers, so a larger label must be text."""
TRUTH_VALUES: Final = {
    text: value for value in (False, True) for text in (str(value).lower(), str(value), str(value).upper())
}
"""How JSON, Python and R write true and false."""


def sorted_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return labels sorted by `meaning`: booleans, then numbers by value, then text by code point.

    >>> sorted_labels(["b", "10", 2, "a", True])
    (True, 2, '10', 'a', 'b')
    """
    return tuple(sorted(labels, key=_sort_key))


def meaning(label: Label) -> Label:
    """Return the number or truth value that a label is or that its text usually means; else the label itself.

    >>> [meaning(label) for label in (True, "TRUE", 7.0, "7", "7.0", "2.5", "007", "2.50", "yes")]
    [True, True, 7, 7, 7, 2.5, '007', '2.50', 'yes']
    """
    if isinstance(label, str):
        if label in TRUTH_VALUES:
            return TRUTH_VALUES[label]
        number = number_from_text(label) if label[:1] in NUMBER_STARTS else None
        whole = number is not None and number.is_integer() and abs(number) <= MAX_INTEGER
        if number is None or label not in (repr(number), str(int(number)) if whole else ""):
            return label
        label = number
    if isinstance(label, float) and label.is_integer() and abs(label) <= MAX_INTEGER:
        return int(label)
    return label


def label_key(label: Label) -> tuple[str, Label]:
    """Return a dictionary key in which ``1``, ``1.0``, ``True`` and ``"1"`` differ."""
    return type(label).__name__, label


def category_codes(categories: Sequence[Label]) -> dict[tuple[str, Label], int]:
    """Return a dictionary of category codes. Its keys are the `label_key` of each label that stands for a category.

    A label stands for the category of the same type and value. If there is none, a number stands for the first category
    that is the same number, and a text for the first number or truth value with this text. If there is none either, a
    label stands for the only category with its `meaning`; an integer beyond 2^53 and its text have one meaning here.

    >>> codes = category_codes(["a", 1, 2.0, 2, "TRUE"])
    >>> [codes.get(label_key(label)) for label in ("a", 1, 1.0, "1", 2.0, 2, True, "true", "3", "01")]
    [0, 1, 1, 1, 2, 3, 4, 4, None, None]
    """
    exact = {label_key(label): code for code, label in enumerate(categories)}
    alike: dict[tuple[str, Label], int] = {}
    meant: dict[tuple[str, Label], int | None] = {}
    for code, label in reversed(list(enumerate(categories))):
        for key in map(label_key, _forms(label)):
            meant[key] = None if key in meant else code
        if not isinstance(label, str):
            alike["str", label_text(label)] = code
        if is_number(label):
            alike["int", label] = alike["float", label] = code
    return {key: code for key, code in meant.items() if code is not None} | alike | exact


def class_code(classes: Sequence[Label], label: Any) -> int | None:
    """Return the code of a class, or None. 1.0 stands for the class 1 if there is no class 1.0, and vice versa."""
    if not isinstance(label, str | int | float):
        return None
    exact = {label_key(each): code for code, each in enumerate(classes)}
    numbers = {each: code for code, each in reversed(list(enumerate(classes))) if is_number(each)}
    return exact.get(label_key(label), numbers.get(label) if is_number(label) else None)


def legal_classes(classes: Sequence[Label]) -> str:
    """Return the message for a label that is no class of a model.

    >>> legal_classes(["no", "yes"])
    "must be one of the model's classes: no, yes"
    """
    quotes = "" if all(isinstance(label, str) for label in classes) else "; numbers and booleans have no quotes"
    return f"must be one of the model's classes: {listed(map(label_text, classes))}{quotes}"


def _forms(label: Label) -> Iterator[Label]:
    """Yield the forms that a label may have in other formats, if it means a number or a truth value."""
    value = meaning(label)
    if isinstance(value, bool):
        yield value
        yield from (text for text, truth in TRUTH_VALUES.items() if truth is value)
    elif isinstance(value, int | float):
        yield from (int(value), str(int(value))) if float(value).is_integer() else ()
        yield from (float(value), repr(float(value)))
    elif value[:1] in NUMBER_STARTS and WHOLE_NUMBER.fullmatch(value):  # a number that JSON readers may round
        yield int(value)


def label_text(label: Label) -> str:
    """Return a label as JSON shows it, without quotes around text: ``True`` is ``true``."""
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(label)


def _sort_key(label: Label) -> tuple[int, Any, str, str]:
    meant = meaning(label)
    rank = 0 if isinstance(meant, bool) else 1 if is_number(meant) else 2
    return rank, meant, type(label).__name__, str(label)


def is_not_text(text: str) -> bool:
    r"""Return whether a text has a character that no name and no category may have.

    >>> is_not_text("größe 🌳"), is_not_text("a\0"), is_not_text("\ud800")
    (False, True, True)
    """
    return NO_TEXT.search(text) is not None
