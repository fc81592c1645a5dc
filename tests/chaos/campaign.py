"""A campaign: the faults on one database, each judged by itself or all together, and the table of what came of them."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.databases import Database
from tests.chaos.faults import FAULTS, Stage
from tests.chaos.load import load
from tests.chaos.oracle import Verdict, judge
from tests.chaos.system import System, running

HEAD = (
    "database",
    "fault",
    "times",
    "jobs",
    "succeeded",
    "cancelled",
    "dead",
    "taken over",
    "decisions",
    "seconds",
    "broken",
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table: what was done how often, and what came of it; or why it was not done."""

    database: str
    fault: str
    times: int
    seconds: float
    verdict: Verdict

    def cells(self) -> tuple[str, ...]:
        """The line as text."""
        states = [self.verdict.states[state] for state in ("succeeded", "cancelled", "dead")]
        verdict = self.verdict
        counts = (self.times, sum(verdict.states.values()), *states, verdict.taken_over, verdict.n_decisions)
        return (self.database, self.fault, *map(str, counts), f"{self.seconds:.0f}", str(len(verdict.broken)))


def each_by_itself(
    name: str, database: Database, folder: Path, *, seed: int, faults: Sequence[str], times: int | None
) -> Iterator[Line | str]:
    """The long form: fault after fault, each with its own load and its own verdict; or why it cannot be done."""
    for number, fault in enumerate(faults):
        if reason := FAULTS[fault].cannot(database):
            yield f"{name}: {fault}: left out, {reason}"
            continue
        n_times = FAULTS[fault].times if times is None else times
        attempts = str(FAULTS[fault].attempts)
        with running(database, folder / str(number), ESPALIER_JOB_ATTEMPTS=attempts) as system:
            yield under_load(system, name, {fault: n_times}, seed=seed, askers=3, jobbers=3, pause=0.05)


def all_together(name: str, database: Database, folder: Path, *, seed: int, times: Mapping[str, int]) -> Line:
    """The short form: fault after fault under one load, and one verdict."""
    with running(database, folder, ESPALIER_LEASE_SECONDS="1") as system:
        possible = {fault: n_times for fault, n_times in times.items() if not FAULTS[fault].cannot(database)}
        return under_load(system, name, possible, seed=seed, askers=2, jobbers=2, pause=0.3)


def under_load(system: System, name: str, times: Mapping[str, int], *, seed: int, **clients: float) -> Line:
    """Do faults to a system while clients ask; then judge."""
    began = time.monotonic()
    draw = random.Random(f"{seed} {' '.join(times)}")
    with load(system, seed=seed, **clients) as one:
        stage = Stage(system, one, draw)
        for fault, n_times in times.items():
            for _ in range(n_times):
                FAULTS[fault].do(stage)
    one.promises.wrong += system.dead()
    verdict = judge(system, one.promises)
    return Line(name, " + ".join(times), sum(times.values()), time.monotonic() - began, verdict)


def table(lines: Sequence[Line]) -> str:
    """Write the table, and below it the promises that were broken."""
    rows = [HEAD, *(line.cells() for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned: list[Callable[[str, int], str]] = [str.ljust, str.ljust] + [str.rjust] * (len(HEAD) - 2)
    shown = [
        "  ".join(align(cell, width) for align, cell, width in zip(aligned, row, widths, strict=True)) for row in rows
    ]
    kinds = Counter((line.database, line.fault, broken) for line in lines for broken in line.verdict.broken)
    return "\n".join([*shown, "", *(f"BROKEN {database}, {fault}: {broken}" for database, fault, broken in kinds)])
