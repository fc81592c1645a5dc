"""What runs in the processes of a worker whose jobs do what their payload says."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import espalier
from service.database.tables import Kind
from service.repositories.job_queue import Claim
from service.repositories.models import NewVersion
from service.settings import Settings
from service.worker import child_main, handlers, loop
from tests.service.waiting import until


def work(settings: Settings) -> None:
    """Run a worker of such jobs."""
    loop.run(settings, child=_child)


def pid_in(file: Path) -> int:
    until(file.exists, what="the start of the child")
    return int(file.read_text())


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # no /proc, or gone between the two lines
        return not Path("/proc").exists()


def _child(settings: Settings, claim: Claim, pipe: Connection) -> None:
    handlers.HANDLERS = {Kind.TRAIN: _act}
    child_main.run_job(settings, claim, pipe)


def only_listen(pipe: Connection) -> None:
    """Run the thread of a job that listens to its worker, and nothing else."""
    child_main.listen(pipe, espalier.Progress())


def _act(context: handlers.JobContext, payload: Mapping[str, Any]) -> NewVersion:
    if "pid_file" in payload:
        partial = Path(payload["pid_file"] + ".partial")
        partial.write_text(str(os.getpid()))
        partial.rename(payload["pid_file"])
    ACTS[payload["act"]](context, payload)
    return NewVersion(model=payload["model"], document=b"{}", preset="cart", summary={"n_leaves": 3}, seconds=0.1)


def _wait(context: handlers.JobContext, payload: Mapping[str, Any]) -> None:
    context.progress.begin("waiting for the end")
    context.progress.state[0] = 0.5
    while not ("until_exists" in payload and Path(payload["until_exists"]).exists()):
        context.progress.check()
        time.sleep(0.01)


def _hang(context: handlers.JobContext, payload: Mapping[str, Any]) -> None:
    context.progress.begin("hanging")
    context.progress.state[0] = 0.5
    while True:
        time.sleep(60)


def _invalid(*_: object) -> None:
    raise espalier.ConfigError(
        [
            espalier.Fault("/criterion", "unknown_value", "must be gini"),
            espalier.Fault("/seed", "type", "must be a whole number"),
        ]
    )


def _not_applicable(*_: object) -> None:
    raise espalier.NotApplicable("no rows were held out")


def _unexpected(*_: object) -> None:
    raise RuntimeError("with a value that nobody should see")


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _eat(context: handlers.JobContext, payload: Mapping[str, Any]) -> None:
    eaten = [b"x" * 2**20 for _ in range(int(payload["megabytes"]))]
    while eaten:
        time.sleep(60)


def _train(context: handlers.JobContext, payload: Mapping[str, Any]) -> None:
    handlers.train(context, {**payload, "dataset": "gone"})


ACTS: Mapping[str, Callable[..., None]] = {
    "finish": lambda *_: None,
    "wait": _wait,
    "hang": _hang,
    "invalid": _invalid,
    "not applicable": _not_applicable,
    "unexpected": _unexpected,
    "die": _die,
    "eat": _eat,
    "train": _train,
}
