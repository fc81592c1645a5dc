"""Measuring side by side: every subject in a process of its own, their turns taken in alternation.

A process of its own keeps one library's threads and memory away from the next one's, so that a peak is the subject's.
The processes of a table start together; nothing is measured before all of them have read their data and warmed up.
Then each has one turn after a pause, again and again, while the others sleep::

    ours      prepare  warm up  .  turn  .  .     turn  .  .     describe
    peer A    prepare  warm up  .  .  turn  .     .  turn  .     describe
    peer B    prepare  warm up  .  .  .     turn  .  .  turn     describe
"""

import importlib
import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

REPETITIONS: Final = 3
PAUSE: Final = 0.5
"""Seconds before each turn: threads of the one before may wait awake for a while, on a processor of the next."""
SHORT: Final = 1.5
"""What takes fewer seconds is done again and again in a turn until so many are over, and the median without the first
counts: processors that slept in the pause, with caches that are another's, need some calls to warm up, and a virtual
machine that was idle for some seconds has given its free memory back, and comes by each page anew."""
PATIENCE: Final = 240.0
"""Seconds for one step of one subject: preparing, a turn, or describing the result."""
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Measurable:
    """What a subject's process measures.

    Attributes:
        act: The thing itself; its result is kept until the next turn.
        warm_up: The same on little: loads code, makes threads.
        describe: Facts about the last result, as JSON; not measured.
        calls: How many calls `act` makes; the seconds shown are those of one.
        own_seconds: Where the thing measures itself in a process of its own: what it says; its memory is not seen.
    """

    act: Callable[[], Any]
    warm_up: Callable[[], Any] = lambda: None
    describe: Callable[[Any], Mapping[str, Any]] = lambda _: NOTHING
    calls: int = 1
    own_seconds: Callable[[Any], float] | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """One line of a table.

    Attributes:
        name: As printed.
        work: ``module:function`` that gives the `Measurable`, or several by name.
        arguments: What the function is called with, as JSON.
        act: Which of several; subjects that differ in nothing else share a process and what it has prepared.
        n_processors: How many processors its process may use; None: all that this process may.
    """

    name: str
    work: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    act: str = ""
    n_processors: int | None = None

    @property
    def order(self) -> str:
        """What its process is told."""
        allowed = sorted(os.sched_getaffinity(0))
        processors = allowed[: self.n_processors or len(allowed)]
        return json.dumps({"work": self.work, "arguments": dict(self.arguments), "processors": processors})


@dataclass(frozen=True, slots=True)
class Measured:
    """What came out.

    Attributes:
        seconds: Median over the turns; None where the subject failed.
        peak_bytes: Most resident memory in the first turn beyond what was resident before it.
        facts: What the subject says of its result.
        fault: Why there are no seconds.
    """

    seconds: float | None = None
    peak_bytes: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None


class Failed(Exception):  # noqa: N818 - the name says what happened
    """A subject ended, or was too slow; the text is shown in the table."""


def measure(subjects: Sequence[Subject], *, repetitions: int = REPETITIONS) -> dict[str, Measured]:
    """Measure the subjects, a turn each, `repetitions` times; give what came out by name, in the order given."""
    by_name = {each.name: each for each in subjects}
    seconds: dict[str, list[float]] = {name: [] for name in by_name}
    facts: dict[str, Mapping[str, Any]] = {}
    faults: dict[str, str] = {}
    peaks: dict[str, int | None] = {}
    with ExitStack() as stack:
        processes = {order: stack.enter_context(_process(order)) for order in {each.order: None for each in subjects}}
        for step in ("ready", *["turn"] * repetitions, "describe"):
            for name, subject in by_name.items():
                if name in faults:
                    continue
                time.sleep(PAUSE if step == "turn" else 0)
                try:
                    answer = processes[subject.order].ask(f"{step} {subject.act}")
                except Failed as failure:
                    faults[name] = str(failure)
                    continue
                if step == "turn":
                    seconds[name].append(answer["seconds"])
                    peaks.setdefault(name, answer["peak_bytes"])
                elif step == "describe":
                    facts[name] = answer
    return {
        name: Measured(fault=faults[name])
        if name in faults
        else Measured(statistics.median(taken), peaks[name], facts[name])
        for name, taken in seconds.items()
    }


def print_table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], *notes: str) -> None:
    """Print rows below their names, columns aligned: the first to the left, the others to the right."""
    widths = [max(len(line[place]) for line in (names, *rows)) for place in range(len(names))]
    print(f"\n{title}\n")
    for line in (names, ["-" * width for width in widths], *rows):
        cells = [
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip())
    for note in notes:
        print(f"  {note}")
    sys.stdout.flush()


def seconds_text(seconds: float | None) -> str:
    """Give a time in the unit that leaves three digits; a dash where there is none."""
    if seconds is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 100 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def ratio_text(peer: float | None, ours: float | None) -> str:
    """Give how many times as long the peer took; a dash where one of them is missing."""
    return "–" if peer is None or not ours else f"{peer / ours:.3g}"


def n_processors() -> int:
    """Give how many processors this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class _Process:
    """The other end of `benchmarks.measured`: a line of JSON to ask, a line of JSON in answer."""

    popen: subprocess.Popen[bytes]

    def ask(self, step: str) -> Any:
        stdin, stdout = self.popen.stdin, self.popen.stdout
        if stdin is None or stdout is None:
            raise Failed("has no pipes")
        with suppress(BrokenPipeError):  # what it said last is still to be read
            stdin.write(step.encode() + b"\n")
        deadline, line = time.monotonic() + PATIENCE, b""
        while not line.endswith(b"\n"):
            if not select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.popen.kill()
                raise Failed(f"took more than {PATIENCE:.0f} s")
            if not (piece := os.read(stdout.fileno(), 65536)):
                raise Failed(f"ended with exit code {self.popen.wait()}")
            line += piece
        answer = json.loads(line)
        if "fault" in answer:
            raise Failed(answer["fault"])
        return answer["answer"]


@contextmanager
def _process(order: str) -> Iterator[_Process]:
    popen = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "benchmarks.measured", order],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if os.environ.get("BENCHMARKS_VERBOSE") else subprocess.DEVNULL,
        cwd=Path(__file__).resolve().parent.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [_root(), os.environ.get("PYTHONPATH")]))},
    )
    try:
        yield _Process(popen)
    finally:
        for pipe in (popen.stdin, popen.stdout):
            if pipe is not None:
                pipe.close()
        try:
            popen.wait(timeout=10)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()


def _root() -> str:
    return str(Path(__file__).resolve().parent.parent)


def works(name: str, arguments: Mapping[str, Any]) -> Mapping[str, Measurable]:
    """Call ``module:function``; give what can be measured, by name, "" where there is but one."""
    module, function = name.split(":")
    found: Measurable | Mapping[str, Measurable] = getattr(importlib.import_module(module), function)(**arguments)
    return {"": found} if isinstance(found, Measurable) else found
