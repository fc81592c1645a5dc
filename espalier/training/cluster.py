"""Grow a tree level by level on a Dask cluster, whose workers search the columns.

The result of a request depends only on the request and on files in the work folder: columns, target, weights, levels.
Any worker can repeat a request. The state that a process keeps is only a cache. Level 3 of a tree is grown like this::

    work folder   columns, target, weights, levels      shared by all, e.g. by NFS
    driver        scan 3 ──► worker ──► candidates      about 50 bytes per node and column
                  mark 3 ──► worker ──► marks           one bit per row; more with missing values or over 2 branches
                  copy   ──► worker ──► rows            of the nodes that are small enough for the driver
                  level 3 is written, and read by every worker before its next answer
"""

import importlib
import secrets
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.errors import ClusterError, ConfigError, EspalierError, Fault
from espalier.growing.levels.checkpoints import load_level
from espalier.growing.levels.grow_levels import ScanResult, Worker
from espalier.growing.levels.marks import Level, Mark, OpenNode, Split
from espalier.growing.levels.table import WorkerSpec, build_worker
from espalier.growing.levels.work_files import ArrayStore, FolderStore
from espalier.progress import Progress
from espalier.version import __version__

CONNECT_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 0.2
"""Time between two checks of the stop flag."""
SCHEDULER_LOOK_SECONDS: Final = 1.0
"""Time between two requests for the scheduler's list of workers and their tasks."""
ANSWER_SECONDS: Final = 600.0
"""A worker that has not answered for this time counts as hung."""
SCHEDULER_SECONDS: Final = 60.0
"""A scheduler that has not answered, or has had no workers, for this time counts as failed."""
MAX_ATTEMPTS: Final = 4
"""Number of attempts at a request before the training ends with an error."""
FORGET_SECONDS: Final = 2.0
"""Maximum time that the end of a training waits for workers to drop its state."""
MAX_STATES: Final = 4
"""A process keeps the state of at most this many parts of the columns."""


def _check_address(distributed: Any, address: str) -> None:
    try:
        distributed.comm.get_address_host_port(address)
    except ValueError:
        message = f"must be the address of a Dask scheduler, such as tcp://127.0.0.1:8786, not {address!r}"
        raise ConfigError([Fault("/cluster", "not_legal", message)]) from None
    is_secured = distributed.Security().get_connection_args("client").get("ssl_context") is not None
    if distributed.comm.parse_address(address)[0] == "tls" and not is_secured:
        message = "needs certificates: set DASK_DISTRIBUTED__COMM__TLS__CA_FILE and those of the client, or use tcp://"
        raise ConfigError([Fault("/cluster", "no_certificates", message)])


@dataclass(frozen=True, slots=True)
class PartRequest:
    """The part of the columns that a request is about, and where its data are.

    Attributes:
        folder: The work folder.
        training: Identifier of the training, unique in the folder.
        spec: The part, without the columns, target and weights, which the worker reads from files in `folder`.
        version: Version of espalier in the process that sends the request.
    """

    folder: Path
    training: str
    spec: WorkerSpec
    version: str = __version__


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """The workers of a Dask scheduler, for growing one tree.

    Attributes:
        client: `distributed.Client`.
        n_workers: Number of workers at the beginning.
        answer_seconds: How long a worker may take for an answer.
        training: Identifier of the training.
        homes: Maps the name of a part to the address of the worker that has its state, or, at first, is to build it.
        hung: Addresses of workers that have not answered in time; they get requests only if there are no others.
        is_aborted: Set when a request fails, because the other requests then need no answer.
    """

    client: Any
    n_workers: int
    answer_seconds: float = ANSWER_SECONDS
    training: str = field(default_factory=lambda: secrets.token_hex(8))
    homes: dict[str, str] = field(default_factory=dict)
    hung: set[str] = field(default_factory=set)
    is_aborted: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def at(cls, address: str, **options: Any) -> "Cluster":
        """Return the cluster of a scheduler, such as ``tcp://127.0.0.1:8786``.

        Raises:
            ClusterError: Dask is not installed, no scheduler answers, or there are no workers.
            ConfigError: The address is not legal, or needs certificates.
        """
        try:
            distributed = importlib.import_module("distributed")
        except ImportError:
            raise ClusterError("Dask is not installed: pip install 'espalier[dask]'") from None
        _check_address(distributed, address)  # a client that cannot connect takes 20 s to close
        try:
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except OSError as error:
            raise ClusterError(f"no Dask scheduler answers at {address} ({type(error).__name__})") from None
        try:
            with suppress(TimeoutError):
                client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            cluster = cls(client, 0, **options)
            n_workers = len(cluster._workers())
            if not n_workers:
                raise ClusterError(f"the Dask scheduler at {address} has no workers")
        except BaseException:
            client.close(timeout=CONNECT_SECONDS)
            raise
        return replace(cluster, n_workers=n_workers)

    def create_workers(self, specs: Sequence[WorkerSpec], store: ArrayStore, progress: Progress) -> list[Worker]:
        """Write target and weights to the work folder `store`. Return one `ClusterWorker` per spec."""
        assert isinstance(store, FolderStore)  # noqa: S101 - `train` has made it
        data = specs[0].data
        for name, array in (("target", data.target), ("weight", data.weight)):
            with store.writer(f"{name}-{self.training}") as write:
                write(array)
        none: Any = np.zeros(0, data.target.dtype)
        bare = replace(data, columns=(), target=none, weight=np.zeros(0))
        requests = [PartRequest(store.folder, self.training, replace(spec, data=bare)) for spec in specs]
        self.homes.update(zip((spec.name for spec in specs), self._workers(), strict=False))
        return [ClusterWorker(self, request, progress) for request in requests]

    def ask(self, question: Callable[[Worker], Any], workers: Sequence[Worker]) -> Iterable[tuple[Worker, Any]]:
        """Call `question` for all workers at the same time, and yield each worker with its answer as answers arrive."""
        with ThreadPoolExecutor(len(workers)) as pool:
            try:
                workers_of = {pool.submit(question, worker): worker for worker in workers}
                for each in as_completed(workers_of):
                    yield workers_of[each], each.result()
            except BaseException:  # also KeyboardInterrupt: the pool waits for its threads
                self.is_aborted.set()
                raise

    def answer(self, progress: Progress, request: PartRequest, *question: Any) -> Any:
        """Return a worker's answer for a part of the columns; if the worker hangs or is lost, ask another one.

        Raises:
            ClusterError: No worker can answer.
            Cancelled: The progress was stopped.
        """
        part = request.spec.name
        for _ in range(MAX_ATTEMPTS):
            preferred = self._preferred(part)
            future = self._submit(preferred, request, question)
            try:
                self.homes[part], result = self._result(future, progress, is_placed=bool(preferred))
            except _Unscheduled:
                self.homes.pop(part, None)
            except TimeoutError:
                processing = self._scheduler_answer("processing", workers=None)
                self.hung.update(address for address, keys in processing.items() if future.key in keys)
            else:
                return result
            finally:
                future.release()
        limit = f"{self.answer_seconds:g} seconds"
        raise ClusterError(f"{MAX_ATTEMPTS} attempts failed: workers were lost or did not answer within {limit}")

    def _preferred(self, part: str) -> list[str]:
        """Return the workers to prefer: the one with the part's state, else all that do not hang. []: any worker."""
        home = [self.homes[part]] if part in self.homes else []
        if not self.hung:
            return home
        others = [address for address in self._workers() if address not in self.hung]
        return [address for address in home if address in others] or others

    def _submit(self, preferred: Sequence[str], request: PartRequest, question: Sequence[Any]) -> Any:
        where = {"workers": preferred, "allow_other_workers": True} if preferred else {}
        try:
            return self.client.submit(_answer, request, *question, pure=False, **where)
        except Exception as error:  # distributed raises bare exceptions
            raise ClusterError(f"the connection to the Dask scheduler was lost: {error}") from error

    def _result(self, future: Any, progress: Progress, *, is_placed: bool) -> Any:
        """Wait for an answer.

        Raises:
            TimeoutError: No answer came in time.
            _Unscheduled: The request has preferred workers, but no worker has it. Dask leaves it unscheduled if the
                preferred worker was lost while there was no other.
        """
        is_done = threading.Event()
        waited = looked = with_workers = scheduled = 0.0
        future.add_done_callback(lambda _: is_done.set())
        while not is_done.wait(LOOK_SECONDS):
            progress.check()
            waited += LOOK_SECONDS
            if self.is_aborted.is_set():
                raise ClusterError("another request was not answered")
            if self.client.status != "running":
                raise ClusterError("the connection to the Dask scheduler was lost")
            if waited >= self.answer_seconds:
                raise TimeoutError
            if waited - looked < SCHEDULER_LOOK_SECONDS:
                continue
            looked = waited
            processing = self._scheduler_answer("processing", workers=None)
            with_workers = waited if processing else with_workers
            if waited - with_workers >= SCHEDULER_SECONDS:
                raise ClusterError(f"the Dask scheduler has had no workers for {SCHEDULER_SECONDS:g} seconds")
            scheduled = waited if any(future.key in keys for keys in processing.values()) else scheduled
            if is_placed and processing and waited - scheduled >= 2 * SCHEDULER_LOOK_SECONDS:
                raise _Unscheduled
        if future.status in ("cancelled", "lost"):
            raise ClusterError(f"the Dask scheduler dropped a request, which is {future.status}")
        try:
            return future.result(timeout=self.answer_seconds)
        except (EspalierError, TimeoutError):
            raise
        except importlib.import_module("distributed").KilledWorker as error:
            raise ClusterError(f"every worker that was tried has died: {error}") from error
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            raise ClusterError(f"the cluster failed ({cause}): all its machines need espalier {__version__}") from error

    def _workers(self) -> list[str]:
        return list(self._scheduler_answer("identity", n_workers=-1)["workers"])

    def _scheduler_answer(self, question: str, **arguments: Any) -> Any:
        """Call the method `question` of the scheduler and return its answer.

        The client has the same methods, but they would wait forever if the scheduler hangs.

        Raises:
            ClusterError: The scheduler does not answer within `SCHEDULER_SECONDS`, or its answer is an error.
        """
        try:
            ask = getattr(self.client.scheduler, question)
            return self.client.sync(ask, callback_timeout=SCHEDULER_SECONDS, **arguments)
        except Exception as error:
            raise ClusterError(f"the Dask scheduler does not answer any more ({type(error).__name__})") from error

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        """Let the workers drop their state, and close the client."""
        with suppress(Exception):  # the scheduler may be gone
            if self.client.status == "running":
                self._forget()
        with suppress(Exception):
            self.client.close(timeout=CONNECT_SECONDS)

    def _forget(self) -> None:
        distributed, last = importlib.import_module("distributed"), []
        for address in set(self._workers()) - self.hung:
            last.append(self.client.submit(_forget, self.training, workers=[address], pure=False))
        distributed.fire_and_forget(last)  # a busy worker forgets later
        with self.client.as_current():
            distributed.wait(last, timeout=FORGET_SECONDS)


class _Unscheduled(Exception):  # noqa: N818 - a state
    """No worker has the request, although there are workers."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterWorker:
    """An `espalier.growing.levels.grow_levels.Worker` that sends its requests to the cluster."""

    cluster: Cluster
    request: PartRequest
    progress: Progress

    @property
    def attributes(self) -> tuple[int, ...]:
        """Numbers of the attributes whose columns this worker searches."""
        return tuple(self.request.spec.columns)

    def root(self) -> tuple[tuple[Any, Any, Any], list[OpenNode]]:
        """Return the root's row of each node table, and the open nodes: the root, or none if it is a leaf."""
        root: tuple[tuple[Any, Any, Any], list[OpenNode]] = self._answer("root", None)
        return root

    def scan(self, levels: Sequence[Level], places: Sequence[int]) -> ScanResult:
        """Return the candidates of this worker's columns at the open nodes with these places."""
        scan: ScanResult = self._answer("scan", len(levels), places)
        return scan

    def mark(self, levels: Sequence[Level], splits: Any) -> dict[int, Mark]:
        """Return the marks of the nodes that split on this worker's columns, keyed by place. A leaf has no mark."""
        own: dict[int, Split] = {at: split for at, split in splits.items() if split.attribute in self.attributes}
        marks: dict[int, Mark] = self._answer("mark", len(levels), own) if own else {}
        return marks

    def copy_rows(self, levels: Sequence[Level], places: Sequence[int]) -> list[Any]:
        """Copy the rows of the open nodes with these places. Return a copy per node, with this worker's columns."""
        copies: list[Any] = self._answer("copy_rows", len(levels), places) if places else []
        return copies

    def _answer(self, question: str, n_levels: int | None, *arguments: Any) -> Any:
        return self.cluster.answer(self.progress, self.request, question, n_levels, arguments)


# --- in the processes of the cluster


@dataclass(slots=True, eq=False)
class _State:
    worker: Worker
    folder: Any  # holds the files of this process; removed with the state
    levels: list[Level] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class _LocalCopies:
    """Writes files to the folder `own` of this process, and reads all other files from the work folder."""

    shared: FolderStore
    own: FolderStore

    def writer(self, name: str) -> Any:
        return self.own.writer(name)

    def read(self, name: str, kind: npt.DTypeLike) -> Any:
        return (self.own if (self.own.folder / name).exists() else self.shared).read(name, kind)

    def remove(self, name: str) -> None:
        self.own.remove(name)


_states: OrderedDict[tuple[str, str], _State] = OrderedDict()
_states_lock = threading.Lock()


def _answer(request: PartRequest, question: str, n_levels: int | None, arguments: Sequence[Any]) -> tuple[str, Any]:
    """Return the address of this worker, and its answer.

    Raises:
        ClusterError: The worker has another espalier version, does not see the work folder, or has too little memory.
    """
    address = importlib.import_module("distributed").get_worker().address
    if request.version != __version__:
        raise ClusterError(f"the worker {address} has espalier {__version__}, this process {request.version}")
    try:
        return address, _answer_of_state(request, question, n_levels, arguments)
    except OSError as error:
        message = f"the worker {address} cannot read the work folder, which it needs at the path {request.folder}"
        raise ClusterError(f"{message}: {error.strerror or type(error).__name__}") from None
    except MemoryError:
        raise ClusterError(f"the worker {address} has too little memory for the rows") from None


def _answer_of_state(request: PartRequest, question: str, n_levels: int | None, arguments: Sequence[Any]) -> Any:
    key = (request.training, request.spec.name)
    with _states_lock:
        state = _states.pop(key, None) or _new_state(request)
        _states[key] = state
        while len(_states) > MAX_STATES:
            _states.popitem(last=False)
    with state.lock:
        try:
            if n_levels is None:
                return getattr(state.worker, question)()
            state.levels += [load_level(request.folder, number) for number in range(len(state.levels), n_levels)]
            return getattr(state.worker, question)(state.levels[:n_levels], *arguments)
        except BaseException:  # perhaps only some columns were updated to the level
            with _states_lock:
                _states.pop(key, None)
            raise


def _forget(training: str) -> None:
    with _states_lock:
        for key in [key for key in _states if key[0] == training]:
            del _states[key]


def _new_state(request: PartRequest) -> _State:
    distributed, shared = importlib.import_module("distributed"), FolderStore(request.folder)
    spec = request.spec
    target = shared.read(f"target-{request.training}", spec.data.target.dtype)
    data = replace(spec.data, target=target, weight=shared.read(f"weight-{request.training}", np.float64))
    folder = tempfile.TemporaryDirectory(dir=distributed.get_worker().local_directory, ignore_cleanup_errors=True)
    store = _LocalCopies(shared, FolderStore(Path(folder.name)))
    return _State(build_worker(replace(spec, data=data), store, Progress()), folder)
