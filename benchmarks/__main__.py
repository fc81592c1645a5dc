"""Print tables: ``python -m benchmarks [--quick | --share SHARE] [--only WORDS] [TABLE …]``.

If no TABLE is named, all but `endurance` are printed.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from benchmarks import (
    endurance,
    footprint,
    growth,
    missing,
    pages,
    prediction,
    pruning,
    rules,
    scale,
    service,
    serving,
    training,
)
from benchmarks.run import QUICK, Run, begin

BENCHMARKS: Final[Mapping[str, Callable[[Run], bool | None]]] = MappingProxyType(
    {
        "training": training.run,
        "missing": missing.run,
        "growth": growth.run,
        "scale": scale.run,
        "pruning": pruning.run,
        "rules": rules.run,
        "prediction": prediction.run,
        "service": service.run,
        "serving": serving.run,
        "pages": pages.run,
        "footprint": footprint.run,
        "endurance": endurance.run,
    }
)
ONLY_BY_NAME: Final = frozenset({"endurance"})
"""Tables that take too long to run without being named."""


def main(words: list[str]) -> int:
    """Run benchmarks. Return 1 if `pages` or `endurance` found a fault, else 0; other missed targets do not count."""
    parser = argparse.ArgumentParser("python -m benchmarks", description="Speed beside the peers, in one run.")
    parser.add_argument(
        "table", nargs="*", help=f"which tables: {', '.join(BENCHMARKS)}; none: all but {', '.join(ONLY_BY_NAME)}"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows: does everything work?")
    parser.add_argument("--share", type=float, default=1.0, help="the same with another share of the rows")
    parser.add_argument(
        "--only",
        default="",
        help="of some tables, the lines with one of these words in their names; commas between",
    )
    arguments = parser.parse_args(words)
    if unknown := [name for name in arguments.table if name not in BENCHMARKS]:
        parser.error(f"no such table: {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    only = tuple(filter(None, arguments.only.split(",")))
    failed = False
    with begin(share=QUICK if arguments.quick else arguments.share, only=only) as run:
        for name in arguments.table or [name for name in BENCHMARKS if name not in ONLY_BY_NAME]:
            failed |= BENCHMARKS[name](run) is False
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
