"""What runs in the processes of a worker whose trainings on disk are killed, or find no room, or note what they did.

Apart from the tests: every process of a job imports this.
"""

import os
import resource
import signal
import time
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from espalier.training import cluster, out_of_core as core, train as training
from service.repositories.job_queue import Claim
from service.settings import Settings
from service.worker import child_main
from tests.service.waiting import PATIENCE

BYTES_A_CELL = 2_000  # fewer nodes are copied, so that there are levels


def killed_at_a_level(what: str, settings: Settings, claim: Claim, pipe: Connection) -> None:
    """Run a job; note which levels are saved, and kill the job or its worker after the third of the first attempt."""
    save, notes = core.save_level, Path(settings.work).with_name("saved")
    worker = parent_process()
    assert worker is not None

    def save_and_note(folder: Path, number: int, level: Any) -> None:
        save(folder, number, level)
        with notes.open("a") as file:
            file.write(f"{claim.attempt} {number}\n")
        if (claim.attempt, number) == (1, 2):
            os.kill(worker.pid or 0 if what == "worker" else os.getpid(), signal.SIGKILL)
            time.sleep(PATIENCE)  # this process ends with its worker

    core.BYTES_A_CELL, core.save_level = BYTES_A_CELL, save_and_note  # type: ignore[misc]
    child_main.run_job(settings, claim, pipe)


def killed_always(settings: Settings, claim: Claim, pipe: Connection) -> None:
    """Run a job and kill it when its first level is saved."""
    core.BYTES_A_CELL, core.save_level = BYTES_A_CELL, lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[misc]
    child_main.run_job(settings, claim, pipe)


def with_a_full_disk(settings: Settings, claim: Claim, pipe: Connection) -> None:
    """Run a job that may write no file of more than 20 kB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    child_main.run_job(settings, claim, pipe)


def noting_answers(settings: Settings, claim: Claim, pipe: Connection) -> None:
    """Run a job that fails if no worker of the cluster was asked."""
    grow, asked = core.grow_in_folder, list[Any]()
    answer = cluster.Cluster.answer

    def counted(self: Any, *question: Any) -> Any:
        asked.append(question)
        return answer(self, *question)

    def grown(*arguments: Any, **options: Any) -> Any:
        tree = grow(*arguments, **options)
        assert asked
        return tree

    cluster.Cluster.answer = counted  # type: ignore[method-assign]
    training.grow_in_folder = grown
    core.BYTES_A_CELL = BYTES_A_CELL  # type: ignore[misc]
    child_main.run_job(settings, claim, pipe)
