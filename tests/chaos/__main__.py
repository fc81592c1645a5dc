"""The long form: ``python -m tests.chaos``. It ends with 1 if a promise was broken."""

import argparse
import random
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.chaos.campaign import Line, each_by_itself, table
from tests.chaos.databases import DATABASES, programs
from tests.chaos.faults import FAULTS

EXPLANATION = """jobs: accepted; each must end once: succeeded, cancelled, or dead (its attempts spent by faults); if it
succeeded, it has one version where it makes one. taken over: attempts given to another worker after a lost lease.
decisions: ids that clients were given; each must be found, and come out the same when it is replayed.
broken: promises that were not kept; must be 0."""


def main() -> int:
    """Run the campaign on each database, and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=list(DATABASES))
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS), metavar="FAULT")
    parser.add_argument("--times", type=int, help="how often each fault is done (as its line says)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended
    print(f"seed {given.seed}", flush=True)
    lines: list[Line] = []
    with (
        tempfile.TemporaryDirectory(prefix="espalier-chaos-", ignore_cleanup_errors=True) as folder,
        suppress(KeyboardInterrupt),
    ):
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user
        for name in given.databases:
            if name == "postgresql" and programs() is None:
                print("postgresql: left out, its server programs (initdb, pg_ctl) are not installed")
                continue
            with DATABASES[name](Path(folder) / name) as database:
                logs = Path(folder) / f"{name}-logs"
                for line in each_by_itself(
                    name, database, logs, seed=given.seed, faults=given.faults, times=given.times
                ):
                    print(line if isinstance(line, str) else table([line]), flush=True)
                    lines += [line] if isinstance(line, Line) else []
    print(f"\n{table(lines)}\n{EXPLANATION}")
    return int(any(line.verdict.broken for line in lines))


sys.exit(main())
