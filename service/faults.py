"""Faults of a request, gathered from all its parts before one error is raised."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import espalier
from service.errors import Fault


@contextmanager
def collected(faults: list[Fault], pointer: Callable[[str], str]) -> Iterator[None]:
    """Turn what the core finds into faults of the request; `pointer` says where a path of the core sits in it."""
    try:
        yield
    except espalier.InvalidInput as error:
        found = [Fault(pointer(fault.path), fault.code, fault.message) for fault in error.faults]
        faults += [fault for fault in found if fault not in faults]


def placed(below: str, elsewhere: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """Give the place of each path of the core: one of `elsewhere` that it begins with, or else `below` a member.

    >>> place = placed("/params", {"/target": "/dataset"})
    >>> place("/target"), place("/max_depth")
    ('/dataset', '/params/max_depth')
    """

    def pointer(path: str) -> str:
        for start, place in (elsewhere or {}).items():
            if path == start or path.startswith(f"{start}/"):
                return place + path[len(start) :]
        return below + path

    return pointer
