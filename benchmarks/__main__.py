"""``python -m benchmarks [NAME …]``: run the named benchmarks, or all of them, and print a table each."""

import sys

from benchmarks import pruning, training

BENCHMARKS = {"training": training.run, "pruning": pruning.run}


def main(names: list[str]) -> int:
    """Run the benchmarks called `names`, all of them if there are none; give the exit code."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
