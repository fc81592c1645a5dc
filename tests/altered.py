"""Documents with one place of them altered, as a hand that edits JSON would."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

Place = tuple[Any, ...]


def spots(value: Any, path: Place = ()) -> Iterator[Place]:
    """Give every place of a JSON value; of a list only the first and the last."""
    yield path
    if isinstance(value, dict):
        for name in value:
            yield from spots(value[name], (*path, name))
    elif isinstance(value, list) and value:
        for place in sorted({0, len(value) - 1}):
            yield from spots(value[place], (*path, place))


def changed(document: Any, path: Place, change: Callable[[Any, Any], object]) -> Any:
    """Give the document with the value at a place changed; `change` gets the holder, which is a copy, and the key."""
    whole = copy.copy(document)
    holder = whole
    for part in path[:-1]:
        holder[part] = copy.copy(holder[part])
        holder = holder[part]
    change(holder, path[-1])
    return whole


def with_value(document: Any, path: Place, value: object) -> Any:
    """Give the document with another value at a place."""
    return changed(document, path, lambda holder, key: holder.__setitem__(key, value))
