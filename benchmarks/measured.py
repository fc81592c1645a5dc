"""Measure subjects of one `Subject.order`: ``python -m benchmarks.measured ORDER`` answers input lines with JSON."""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final

from benchmarks.measuring import Measurable, works

STATUS = Path("/proc/self/status")
FORGET_PEAK = "5"  # proc(5), clear_refs: the peak starts again from what is resident now

FIRST_TO_GO = "1000"  # if memory runs out, the system ends this process first, and its line of the table says so


class _Turns:
    """A measurable, and the result of its last turn."""

    def __init__(self, measurable: Measurable, short_seconds: float) -> None:
        self.measurable = measurable
        self.short_seconds = short_seconds
        self.result: Any = None

    def ready(self) -> Mapping[str, Any]:
        self.measurable.warm_up()
        return {}

    def turn(self) -> Mapping[str, Any]:
        before = _forget_peak()
        seconds = [self._act()]
        peak = None if before is None else max(0, _memory("VmHWM") - before)
        if self.measurable.own_seconds is not None:
            return {"seconds": self.measurable.own_seconds(self.result), "peak_bytes": None}
        spent = seconds[0]
        while spent < self.short_seconds:
            seconds.append(self._act())
            spent += seconds[-1]
        return {"seconds": statistics.median(seconds[1:] or seconds) / self.measurable.calls, "peak_bytes": peak}

    def _act(self) -> float:
        self.result = None
        begun = time.perf_counter()
        self.result = self.measurable.act()
        return time.perf_counter() - begun

    def describe(self) -> Mapping[str, Any]:
        return self.measurable.describe(self.result)


STEPS: Final[Mapping[str, Callable[[_Turns], Mapping[str, Any]]]] = MappingProxyType(
    {"ready": _Turns.ready, "turn": _Turns.turn, "describe": _Turns.describe}
)


def main(order: Mapping[str, Any]) -> None:
    """Answer the steps on standard input until it ends."""
    answers = _own_output()
    os.sched_setaffinity(0, order["processors"])
    Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO)
    try:
        measurables = works(order["work"], order["arguments"])
    except Exception as error:
        _send(answers, {"fault": _line(error)})
        return
    turns = {act: _Turns(measurable, order["short_seconds"]) for act, measurable in measurables.items()}
    for line in sys.stdin:
        step, _, act = line.rstrip("\n").partition(" ")
        try:
            _send(answers, {"answer": dict(STEPS[step](turns[act]))})
        except Exception as error:
            _send(answers, {"fault": _line(error)})


def _own_output() -> BinaryIO:
    """Return the original standard output, for answers. Redirect the output of libraries to standard error."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(pipe, "wb")


def _send(answers: BinaryIO, answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:120]


def _forget_peak() -> int | None:
    """Reset the peak memory and return the resident bytes, or None if the system cannot reset the peak."""
    try:
        Path("/proc/self/clear_refs").write_text(FORGET_PEAK)
        return _memory("VmRSS")
    except OSError:
        return None


def _memory(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
