"""A tree that the workers of a Dask cluster grow is the tree of one process, whoever is killed meanwhile."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import distributed
import pytest

import espalier
from espalier import ClusterError, ConfigError, Progress, train, training_config
from espalier.config.presets import resolved
from espalier.growing.grow import grow
from espalier.growing.levels.checkpoints import save_level
from espalier.growing.levels.table import LevelOptions, grow_by_levels
from espalier.growing.levels.work_files import FolderStore
from espalier.growing.training_data import training_data
from espalier.training import cluster as under_test, out_of_core
from espalier.training.cluster import Cluster
from tests.core.model_trees import reference_data
from tests.dask_cluster import ENDED, local_cluster, processes
from tests.factories import needs_reference

N_WORKERS = 3


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    with local_cluster(N_WORKERS) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def all_workers(dask: Any) -> None:
    with distributed.Client(dask.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(N_WORKERS, timeout=ENDED)


def grown(data: espalier.Dataset, preset: str, cluster: Cluster, folder: Path, at_level: Callable[[int], None]) -> Any:
    """Grow by the cluster alone: no node is copied. `at_level` is called when a level is saved."""
    config, n_saved = resolved(training_config(preset), data.schema), 0

    def save(level: Any) -> None:
        nonlocal n_saved
        save_level(folder, n_saved, level)
        at_level(n_saved)
        n_saved += 1

    options = LevelOptions(
        FolderStore(folder),
        max_cells=0,
        n_workers=cluster.n_workers,
        save=save,
        create_workers=cluster.create_workers,
        ask=cluster.ask,
    )
    tree = grow_by_levels(training_data(data, config), config, Progress(), options).tree
    return espalier.to_text(replace(train(data, preset, pruning=None), body=tree)), n_saved


def grown_here(data: espalier.Dataset, preset: str) -> str:
    config = resolved(training_config(preset), data.schema)
    return espalier.to_text(replace(train(data, preset, pruning=None), body=grow(data, config).tree))


@needs_reference
@pytest.mark.parametrize(
    ("name", "preset"),
    [("iris", "cart"), ("golf_missing", "c45"), ("labor", "j48"), ("weather_nominal", "id3"), ("cpu", "cart")],
)
def test_the_tree_of_the_cluster_is_that_of_one_process(dask: Any, tmp_path: Path, name: str, preset: str) -> None:
    data = reference_data(name)
    with Cluster.at(dask.scheduler_address) as cluster:
        text, n_levels = grown(data, preset, cluster, tmp_path, lambda _: None)
    assert text == grown_here(data, preset)
    assert n_levels > 1


@needs_reference
@pytest.mark.parametrize(("name", "preset"), [("iris", "cart"), ("labor", "c45")])
def test_a_worker_that_is_killed_at_every_level_changes_nothing(
    dask: Any, tmp_path: Path, name: str, preset: str
) -> None:
    data = reference_data(name)

    def kill_one(level: int) -> None:
        nannies = list(dask.workers.values())
        os.kill(nannies[level % len(nannies)].pid, signal.SIGKILL)

    with Cluster.at(dask.scheduler_address) as cluster:
        text, n_levels = grown(data, preset, cluster, tmp_path, kill_one)
    assert text == grown_here(data, preset)
    assert n_levels > 1


@needs_reference
def test_a_question_that_hangs_is_asked_of_another_worker(
    dask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, stopped, hung = reference_data("iris"), list[int](), list[str]()
    known = Cluster._result

    def result(self: Cluster, future: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return known(self, future, *arguments, **options)
        except TimeoutError:
            hung.append(future.key)
            raise

    def stop_two(level: int) -> None:
        if level == 0:  # three questions at once: of three workers two are halted
            stopped.extend(each.pid for each in list(dask.workers.values())[:2])
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)

    monkeypatch.setattr(Cluster, "_result", result)
    try:
        with Cluster.at(dask.scheduler_address, answer_seconds=1.0) as cluster:
            text, _ = grown(data, "cart", cluster, tmp_path, stop_two)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert text == grown_here(data, "cart")
    assert hung


@needs_reference
def test_an_error_of_one_worker_does_not_wait_for_another_that_hangs(dask: Any, tmp_path: Path) -> None:
    halted = next(iter(dask.workers.values())).pid

    def halt_one_and_fail_the_others(level: int) -> None:
        os.kill(halted, signal.SIGSTOP)
        (tmp_path / f"level-{level:05d}.npz").unlink()

    try:
        with Cluster.at(dask.scheduler_address) as cluster:
            with pytest.raises(ClusterError, match="cannot read the work folder"):
                grown(reference_data("iris"), "cart", cluster, tmp_path, halt_one_and_fail_the_others)
            assert cluster.is_aborted.is_set()
            assert not cluster.hung  # it was not waited for until its time was over
    finally:
        os.kill(halted, signal.SIGCONT)


def test_a_growing_whose_scheduler_is_killed_goes_on_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(out_of_core, "BYTES_A_CELL", 256)  # the root is not copied into memory
    data = tmp_path / "table.csv"
    data.write_text("a,b,y\n" + "".join(f"{i * 37 % 1009},{i * 53 % 997},{'pqr'[i * i % 3]}\n" for i in range(60_000)))
    expected = train(espalier.dataset_from_file(data, target="y"), "cart", max_depth=9)
    given: dict[str, Any] = {"target": "y", "max_depth": 9, "memory_limit": 2**24, "work": tmp_path / "work"}
    with processes() as (address, scheduler), pytest.MonkeyPatch.context() as patch:
        known, calls = Cluster.answer, list[int]()

        def answer(self: Cluster, *task: Any) -> Any:
            calls.append(1)
            if len(calls) == 8:
                scheduler.kill()
            return known(self, *task)

        patch.setattr(Cluster, "answer", answer)
        with pytest.raises(ClusterError):
            train(data, "cart", cluster=address, **given)
    assert any((tmp_path / "work").glob("level-*.npz"))
    with processes() as (address, _):
        model = train(data, "cart", cluster=address, **given)
    assert espalier.to_json(model) == espalier.to_json(expected)
    assert not (tmp_path / "work").exists()


def small_table(folder: Path) -> Path:
    """Write a table whose rows fit into the memory limit."""
    table = folder / "table.csv"
    table.write_text("a,b,y\n" + "".join(f"{i * 37 % 1009},{i * 53 % 997},{'pqr'[i * i % 3]}\n" for i in range(3_000)))
    return table


def n_states(training: str) -> int:
    """Return of how many parts this process keeps the state; runs on a worker."""
    return sum(key[0] == training for key in under_test._states)


@needs_reference
def test_a_part_stays_with_its_worker_and_is_forgotten_at_the_end(dask: Any, tmp_path: Path) -> None:
    data, homes = reference_data("iris"), list[dict[str, str]]()
    with distributed.Client(dask.scheduler_address, set_as_default=False) as client:
        with Cluster.at(dask.scheduler_address) as cluster:
            grown(data, "cart", cluster, tmp_path, lambda _: homes.append(dict(cluster.homes)))
            assert sum(client.run(n_states, cluster.training).values()) == N_WORKERS
        assert len(set(homes[0].values())) == N_WORKERS
        assert homes == [homes[0]] * len(homes)
        assert sum(client.run(n_states, cluster.training).values()) == 0


@needs_reference
def test_a_worker_that_does_not_see_the_folder_or_has_another_version_is_told_apart(tmp_path: Path) -> None:
    with processes(n_workers=1) as (address, _), Cluster.at(address) as cluster, pytest.MonkeyPatch.context() as patch:
        data = reference_data("iris")
        patch.setattr(Cluster, "create_workers", _create_workers_elsewhere)
        with pytest.raises(
            ClusterError, match=r"the worker tcp://\S+ cannot read .* at the path \S+/elsewhere: No such"
        ):
            grown(data, "cart", cluster, tmp_path, lambda _: None)
        patch.undo()
        patch.setattr(under_test, "PartRequest", partial(under_test.PartRequest, version="0.0"))
        with pytest.raises(ClusterError, match=r"the worker tcp://\S+ has espalier \S+, this process 0\.0"):
            grown(data, "cart", cluster, tmp_path, lambda _: None)


def _create_workers_elsewhere(self: Cluster, specs: Any, store: Any, progress: Progress) -> Any:
    requests = [under_test.PartRequest(store.folder / "elsewhere", self.training, each) for each in specs]
    return [under_test.ClusterWorker(self, each, progress) for each in requests]


def test_a_relative_work_folder_is_that_of_the_command(
    dask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small_table(tmp_path)
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"target": "y", "memory_limit": 2**24, "work": "work", "cluster": dask.scheduler_address}
    expected = train(espalier.dataset_from_file(table, target="y"))
    assert espalier.to_json(train(table, **given)) == espalier.to_json(expected)


@needs_reference
@pytest.mark.parametrize(
    ("is_scheduler", "message"),
    [(True, "the Dask scheduler does not answer any more"), (False, "has had no workers for 2 seconds")],
)
def test_a_scheduler_that_hangs_and_one_without_workers_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_scheduler: bool, message: str
) -> None:
    monkeypatch.setattr(under_test, "SCHEDULER_SECONDS", 2.0)
    with processes(n_workers=1) as (address, scheduler), Cluster.at(address) as cluster:
        with distributed.Client(address, set_as_default=False) as client:
            (worker,) = client.run(os.getpid).values()
        halted = scheduler.pid if is_scheduler else worker
        with pytest.raises(ClusterError, match=message):
            grown(
                reference_data("iris"), "cart", cluster, tmp_path,
                lambda _: os.kill(halted, signal.SIGSTOP if is_scheduler else signal.SIGKILL),
            )  # fmt: skip


def test_who_asks_for_a_cluster_that_is_not_there_is_told(tmp_path: Path) -> None:
    data = tmp_path / "table.csv"
    data.write_text("a,y\n1,p\n2,q\n")
    given: dict[str, Any] = {"target": "y", "memory_limit": 2**24}
    with pytest.raises(ConfigError, match=r"/cluster: needs the folder `work`"):
        train(data, "cart", cluster="tcp://127.0.0.1:1", **given)
    with pytest.raises(ConfigError, match=r"/cluster: is only read together with memory_limit"):
        train(espalier.dataset_from_file(data, target="y"), "cart", cluster="tcp://127.0.0.1:1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(under_test, "CONNECT_SECONDS", 1.0)
        with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127.0.0.1:1"):
            train(data, "cart", cluster="tcp://127.0.0.1:1", work=tmp_path / "work", **given)
        assert not (tmp_path / "work").exists()
        for wrong in ("nowhere", "http://127.0.0.1:1"):
            with pytest.raises(ConfigError, match=r"/cluster: must be the address of a Dask scheduler, such as tcp://"):
                train(data, "cart", cluster=wrong, work=tmp_path / "work", **given)
        with pytest.raises(ConfigError, match=r"/cluster: needs certificates"):
            train(data, "cart", cluster="tls://127.0.0.1:1", work=tmp_path / "work", **given)
        with processes(n_workers=0) as (address, _), pytest.raises(ClusterError, match="has no workers"):
            train(data, "cart", cluster=address, work=tmp_path / "other", **given)
