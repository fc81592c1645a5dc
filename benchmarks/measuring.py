"""Measure side by side, in separate processes: the subjects of a table take turns.

The threads and the memory of a process belong to one library only. The processes of a table start together; nothing
is measured before all of them have read their data and warmed up. Then there are several rounds. In each round, each
subject has one turn after a pause, while the others sleep. A turn first resets the memory peak of its process::

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
"""Seconds before each turn: threads of the previous subject may still spin on a processor of the next."""
SHORT: Final = 1.5
"""A shorter action is repeated in a turn until this many seconds are over. The result is the median without the first
call, since processors and caches are cold after the pause, and a virtual machine that was idle has returned its free
memory and must fetch each page again."""
PATIENCE: Final = 240.0
"""Seconds for one step of one subject: preparing, a turn, or describing the result."""
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Measurable:
    """An action that the process of a subject measures.

    Attributes:
        act: The measured action; its result is kept until `act` is called again.
        warm_up: The same action on few rows, which loads code and starts threads.
        describe: Returns JSON-serializable facts about the last result; not measured.
        calls: Number of calls that `act` makes; the seconds shown are those of one call.
        own_seconds: Reads the seconds from the result if another process does the work; memory is then not measured.
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
        name: Name of the line.
        work: ``module:function`` that returns the `Measurable`, or several by name.
        arguments: JSON-serializable keyword arguments of the function.
        act: Name of the `Measurable` if there are several. Subjects that differ only in `name` and `act` share a
            process and its prepared data.
        n_processors: Number of processors that the subject's process may use; None: all that its parent may use.
        short_seconds: A shorter action is repeated in a turn until this many seconds are over. The time of the turn is
            then the median of all repetitions but the first.
    """

    name: str
    work: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    act: str = ""
    n_processors: int | None = None
    short_seconds: float = SHORT

    @property
    def order(self) -> str:
        """Return the command-line argument of the subject's process."""
        allowed = sorted(os.sched_getaffinity(0))
        processors = allowed[: self.n_processors or len(allowed)]
        return json.dumps(
            {
                "work": self.work,
                "arguments": dict(self.arguments),
                "processors": processors,
                "short_seconds": self.short_seconds,
            }
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """Result of a subject.

    Attributes:
        seconds: Median of the times of the turns, for one call; None if the subject failed.
        peak_bytes: Peak of the resident memory in the first action, less the memory before it; None if not measured.
        facts: Facts that the subject returns about its result.
        fault: The reason why there are no seconds.
    """

    seconds: float | None = None
    peak_bytes: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None


class Failed(Exception):  # noqa: N818 - the name says what happened
    """The process of a subject ended, reported a fault, or was too slow. The table shows the message."""


def measure(
    subjects: Sequence[Subject], *, repetitions: int = REPETITIONS, pause: float = PAUSE
) -> dict[str, Measured]:
    """Measure every subject once in each of `repetitions` rounds. Return results by name, ordered like `subjects`."""
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
                time.sleep(pause if step == "turn" else 0)
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
        else Measured(statistics.median(turns), peaks[name], facts[name])
        for name, turns in seconds.items()
    }


def print_table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], *notes: str) -> None:
    """Print rows below column names. The first column is aligned to the left, the others to the right."""
    widths = [max(len(line[column]) for line in (names, *rows)) for column in range(len(names))]
    print(f"\n{title}\n")
    for line in (names, ["-" * width for width in widths], *rows):
        cells = [
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip())
    for note in notes:
        print(f"  {note}")
    sys.stdout.flush()


def seconds_text(seconds: float | None) -> str:
    """Return a time in s, ms or µs with about three significant digits, or a dash for None."""
    if seconds is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 100 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def ratio_text(peer: float | None, ours: float | None) -> str:
    """Return the peer's time divided by ours, or a dash if one of them is missing."""
    return "–" if peer is None or not ours else f"{peer / ours:.3g}"


def n_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class _Process:
    """A process of `benchmarks.measured`: each step is a line of text, each answer a line of JSON."""

    popen: subprocess.Popen[bytes]

    def ask(self, step: str) -> Any:
        stdin, stdout = self.popen.stdin, self.popen.stdout
        if stdin is None or stdout is None:
            raise Failed("has no pipes")
        with suppress(BrokenPipeError):  # its last answer is still to be read
            stdin.write(step.encode() + b"\n")
        deadline, line = time.monotonic() + PATIENCE, b""
        while not line.endswith(b"\n"):
            if not select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.popen.kill()
                raise Failed(f"took more than {PATIENCE:.0f} s")
            if not (chunk := os.read(stdout.fileno(), 65536)):
                raise Failed(f"ended with exit code {self.popen.wait()}")
            line += chunk
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
    """Call ``module:function`` and return its measurables by name; a single one has the name ""."""
    module, function = name.split(":")
    measurables: Measurable | Mapping[str, Measurable] = getattr(importlib.import_module(module), function)(**arguments)
    return {"": measurables} if isinstance(measurables, Measurable) else measurables
