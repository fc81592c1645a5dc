"""What a command says on standard error while it works."""

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import espalier

SAYINGS: Final = (
    ("compiling kernels", "compiling kernels, once on this machine: this takes half a minute or so"),
    (
        "without compiled kernels",
        "no kernels are compiled on this machine yet: little data is done without (`espalier compile` makes them)",
    ),
)
"""A part of a phase's name, and what is said of it."""


def telling() -> "espalier.Progress":
    """Give a progress that says, once, that kernels are being compiled or that the work is done without."""
    import espalier  # noqa: PLC0415 - `espalier --help` needs no arrays

    said: set[str] = set()

    def tell(phase: str) -> None:
        for part, saying in SAYINGS:
            if part in phase and part not in said:
                said.add(part)
                print(f"espalier: {saying}", file=sys.stderr, flush=True)

    return espalier.Progress(tell)
