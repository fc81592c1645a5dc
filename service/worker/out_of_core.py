"""Trainings that keep their table on disk, and the work folders of their jobs.

::

    ESPALIER_WORK/espalier-job-<id>/<version of espalier>-<memory limit>/
                                    the columns and their sort orders: each attempt writes them
                                    the finished levels: the next attempt continues after them

The folder of a job is removed when the job has ended.
"""

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select

import espalier
from service.database.engine import Sessions, read_session
from service.database.tables import DataSet, Job
from service.repositories import datasets
from service.repositories.job_queue import FINAL
from service.serialization.dataset_chunks import MAX_CHUNK_ROWS
from service.settings import Settings

if TYPE_CHECKING:
    from service.worker.handlers import JobContext

PREFIX: Final = "espalier-job-"
BYTES_A_CELL: Final = 24  # for a training in memory: 8 for the table, up to 16 for the sorted columns
BYTES_OF_PROCESS: Final = 2**27  # additional bytes for the libraries and for reading
IN_USE_SECONDS: Final = 0.5  # between two checks of a folder that an attempt of a lost worker still uses


def memory_limit(
    settings: Settings, payload: Mapping[str, Any], config: espalier.TrainingConfig, data_set: DataSet
) -> int | None:
    """Return the memory limit in bytes if the table stays on disk; None if the table is loaded into memory.

    If the request has no limit, a table that is too large for the memory of a job stays on disk, and its limit is half
    of the memory of a job. The table is loaded nevertheless if the configuration or the holdout needs it in memory.
    """
    given: int | None = payload.get("memory_limit")
    of_job = settings.job_memory_mb * 2**20
    needed = BYTES_OF_PROCESS + data_set.n_rows * len(data_set.declared["columns"]) * BYTES_A_CELL
    if given is not None or needed <= of_job:
        return given
    try:
        espalier.check_out_of_core(config, payload["holdout"], of_job // 2, n_rows=data_set.n_rows)
    except espalier.ConfigError:
        return None
    return of_job // 2


def train(
    job: "JobContext", data_set: DataSet, config: espalier.TrainingConfig, *, limit: int
) -> tuple[espalier.Model, Mapping[str, Any] | None]:
    """Train with `limit` bytes of memory for the table; return the model and trace of `espalier.train_traced`."""
    folder, progress = folder_of(job.settings, job.job_id), job.progress
    cluster = None if job.settings.dask == "none" else job.settings.dask
    while True:
        with suppress(OSError):  # if it fails, `espalier` cannot create `work`, and reports the reason
            folder.mkdir(0o700, parents=True, exist_ok=True)
        work = folder / f"{espalier.__version__}-{limit}"
        parts = _parts(job.source, data_set, progress)
        try:
            return espalier.train_traced(
                parts, config, progress=progress, memory_limit=limit, work=work, cluster=cluster
            )
        except espalier.ConfigError as error:
            if error.faults[0].code != "in_use":
                raise
        progress.check()
        time.sleep(IN_USE_SECONDS)


def folder_of(settings: Settings, job_id: str) -> Path:
    """Return the folder of a job."""
    return settings.work_folder / f"{PREFIX}{job_id}"


def remove_folder(settings: Settings, job_id: str) -> None:
    """Remove the folder of a job, if there is one."""
    shutil.rmtree(folder_of(settings, job_id), ignore_errors=True)


def remove_ended(settings: Settings, source: Sessions) -> None:
    """Remove the folders that ended jobs have left behind, since a killed worker does not remove them."""
    ids = [folder.name.removeprefix(PREFIX) for folder in settings.work_folder.glob(f"{PREFIX}*")]
    if ids:
        with read_session(source) as session:
            ended = session.scalars(select(Job.id).where(Job.id.in_(ids), Job.state.in_(FINAL))).all()
        for job_id in ended:
            remove_folder(settings, job_id)


def _parts(source: Sessions, data_set: DataSet, progress: espalier.Progress) -> Iterator[espalier.Dataset]:
    for first_row, part in datasets.iterate_parts(source, data_set.id, max_rows=MAX_CHUNK_ROWS):
        progress.state[0] = first_row / data_set.n_rows
        yield part
