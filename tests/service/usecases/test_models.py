"""Data sets, models, versions, and the cache of decoded models."""

import hashlib
import threading

import pytest
from sqlalchemy import func, select, update

import espalier
from service.database.engine import Sessions, connect, read_session, sessions, transaction
from service.database.tables import DataSet, DataSetChunk, Job, Kind, ModelName, State, Version
from service.errors import Conflict, NotFound, ValidationFailed
from service.repositories import datasets, job_queue, models
from service.repositories.model_cache import ModelCache, load_version
from service.repositories.pagination import page
from service.settings import Settings
from service.usecases.datasets import delete_data_set
from tests.service.kept import keep_data_set, keep_version, new_version, patients
from tests.service.starting import process_context
from tests.service.waiting import PATIENCE


def test_a_data_set_is_found_with_what_is_known_of_it(source: Sessions) -> None:
    data_set_id = keep_data_set(source, name="Patients, 2026")

    with read_session(source) as session:
        found = datasets.find_data_set(session, data_set_id)

    assert (found.name, found.n_rows, found.n_attributes, found.task) == ("Patients, 2026", 12, 2, "classification")
    assert found.fingerprint == patients().fingerprint
    assert espalier.Schema.from_dict(found.declared) == patients().schema


@pytest.mark.parametrize("name", ["", "x" * 201, "nul\0", "line\nbreak"])
def test_a_name_that_cannot_be_shown_is_rejected(name: str, source: Sessions) -> None:
    with pytest.raises(ValidationFailed) as caught:
        keep_data_set(source, name=name)

    assert [fault.path for fault in caught.value.faults] == ["/name"]


def test_data_sets_are_listed_from_the_newest_in_pages(source: Sessions) -> None:
    ids = [keep_data_set(source, name=str(number)) for number in range(3)]

    with read_session(source) as session:
        first = page(session, DataSet, limit=2)
        second = page(session, DataSet, limit=2, cursor=first.next)

    assert [row.id for row in (*first.items, *second.items)] == ids[::-1]
    assert second.next is None


def test_a_deleted_data_set_takes_its_cells_with_it(source: Sessions) -> None:
    data_set_id = keep_data_set(source)

    with transaction(source) as session:
        delete_data_set(session, data_set_id)

    with read_session(source) as session:
        assert session.scalar(select(func.count()).select_from(DataSetChunk)) == 0
        with pytest.raises(NotFound):
            datasets.find_data_set(session, data_set_id)


@pytest.mark.parametrize("role", ["data_set_id", "holdout_data_set_id"])
def test_a_data_set_in_use_by_a_job_is_kept_and_the_job_is_named(role: str, source: Sessions) -> None:
    data_set_id = keep_data_set(source)
    with transaction(source) as session:
        job = job_queue.enqueue(session, Job(kind=Kind.TRAIN, payload={}, **{role: data_set_id}), max_attempts=3)

    with pytest.raises(Conflict, match=f"used by job {job.id}"), transaction(source) as session:
        delete_data_set(session, data_set_id)


def test_a_data_set_whose_jobs_are_finished_can_go_and_the_jobs_stay(source: Sessions) -> None:
    data_set_id = keep_data_set(source)
    with transaction(source) as session:
        job = job_queue.enqueue(session, Job(kind=Kind.TRAIN, payload={}, data_set_id=data_set_id), max_attempts=3)
        job_queue.cancel(session, job.id)

    with transaction(source) as session:
        delete_data_set(session, data_set_id)

    with read_session(source) as session:
        assert job_queue.find_job(session, job.id).data_set_id is None


@pytest.mark.parametrize("role", ["data_set_id", "holdout_data_set_id"])
def test_a_data_set_that_a_version_came_from_is_kept_and_the_version_is_named(role: str, source: Sessions) -> None:
    data_set_id = keep_data_set(source)
    keep_version(source, "drugs", **{role: data_set_id})

    with pytest.raises(Conflict, match="version 1 of model 'drugs'"), transaction(source) as session:
        delete_data_set(session, data_set_id)


def test_versions_of_a_model_count_from_one(source: Sessions) -> None:
    numbers = [keep_version(source, name).number for name in ("a", "a", "b", "a")]

    assert numbers == [1, 2, 1, 3]


def test_a_version_keeps_its_document_byte_for_byte_with_its_digest(source: Sessions) -> None:
    keep_version(source)
    content = new_version().document

    with read_session(source) as session:
        assert models.find_version(session, "drugs").document == content
        assert models.find_version(session, "drugs").document_sha256 == hashlib.sha256(content).hexdigest()


def test_a_number_is_never_given_twice_even_after_its_version_is_gone(source: Sessions) -> None:
    keep_version(source)
    last = keep_version(source)
    with transaction(source) as session:
        session.delete(session.get_one(Version, last.id))

    assert keep_version(source).number == 3


def test_without_a_number_the_newest_version_is_meant(source: Sessions) -> None:
    first, second = keep_version(source), keep_version(source)

    with read_session(source) as session:
        assert models.find_version(session, "drugs").id == second.id
        assert models.find_version(session, "drugs", 1).id == first.id
        assert models.newest_version_id(session, "drugs") == second.id


def test_a_pruned_version_names_its_parent_and_keeps_its_trace(source: Sessions) -> None:
    first = keep_version(source)
    keep_version(source, parent_id=first.id, trace={"steps": [{"node": 3}]})

    with read_session(source) as session:
        found = models.find_version(session, "drugs", 2)
        assert (found.parent_id, found.parent_number) == (first.id, 1)
        assert found.trace == {"steps": [{"node": 3}]}
        assert models.find_version(session, "drugs", 1).trace is None


def test_what_does_not_exist_is_not_found_and_says_what_is_missing(source: Sessions) -> None:
    keep_version(source)

    with read_session(source) as session:
        with pytest.raises(NotFound, match="there is no model 'none'"):
            models.find_version(session, "none", 1)
        with pytest.raises(NotFound, match="there is no model 'none'"):
            models.newest_version_id(session, "none")
        with pytest.raises(NotFound, match="there is no model 'none'"):
            models.list_versions(session, "none")
        with pytest.raises(NotFound, match="there is no version 'drugs/9'"):
            models.find_version(session, "drugs", 9)
        with pytest.raises(NotFound):
            load_version(session, "none")


@pytest.mark.parametrize("name", ["a", "A9", "x.y-z_0", "a" * 64])
def test_a_legal_model_name_is_taken(name: str) -> None:
    models.check_model_name(name)


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "-x", "a b", "ä", "a" * 65, "a\n", "a\0"])
def test_another_model_name_is_rejected_with_what_is_legal(name: str) -> None:
    with pytest.raises(ValidationFailed, match="1 to 64 of the characters"):
        models.check_model_name(name)


def test_models_and_versions_are_listed_from_the_newest(source: Sessions) -> None:
    for name in ("a", "b", "a"):
        keep_version(source, name)

    with read_session(source) as session:
        assert [model.name for model in models.list_models(session).items] == ["b", "a"]
        assert [version.number for version in models.list_versions(session, "a").items] == [2, 1]


def test_processes_that_add_versions_at_once_get_different_numbers(settings: Settings, source: Sessions) -> None:
    context = process_context()
    processes = [context.Process(target=_add_versions, args=(settings, 10)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)

    with read_session(source) as session:
        assert sorted(session.scalars(select(Version.number))) == list(range(1, 31))
        assert session.scalar(select(func.count()).select_from(ModelName)) == 1


def test_the_cache_decodes_a_version_once(source: Sessions) -> None:
    version = keep_version(source)
    cache = ModelCache()

    with read_session(source) as session:
        first = cache.get(session, version.id)
        second = cache.get(session, version.id)

    assert first is second
    assert (first.model_name, first.number, first.id) == ("drugs", 1, version.id)
    assert first.attributes == {"age", "pressure"}
    assert espalier.to_json(first.model) == new_version().document


def test_the_least_recently_used_model_makes_room(source: Sessions) -> None:
    ids = [keep_version(source).id for _ in range(3)]
    cache = ModelCache(max_models=2)

    with read_session(source) as session:
        first, second = cache.get(session, ids[0]), cache.get(session, ids[1])
        assert cache.get(session, ids[0]) is first
        cache.get(session, ids[2])
        assert cache.get(session, ids[0]) is first
        assert cache.get(session, ids[1]) is not second


@pytest.mark.parametrize(("share", "kept"), [(3.0, 3), (2.9, 2), (0.5, 1)])
def test_models_of_many_nodes_make_room_for_each_other_and_one_is_kept_anyway(
    source: Sessions, share: float, kept: int
) -> None:
    ids = [keep_version(source).id for _ in range(3)]
    with read_session(source) as session:
        n_nodes = load_version(session, ids[0]).model.tree.n_nodes
        cache = ModelCache(max_nodes=int(share * n_nodes))
        before = [cache.get(session, one) for one in ids]
        again = [cache.get(session, one) for one in reversed(ids)]

    assert [one is other for one, other in zip(reversed(before), again, strict=True)] == [
        place < kept for place in range(3)
    ]


def test_threads_share_one_decoded_model(source: Sessions) -> None:
    version = keep_version(source)
    cache = ModelCache()
    loaded = []

    def get() -> None:
        with read_session(source) as session:
            loaded.append(cache.get(session, version.id))

    threads = [threading.Thread(target=get) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(loaded) == 8
    assert len({id(one) for one in loaded}) == 1


def test_a_damaged_document_is_our_fault_and_not_the_callers(source: Sessions) -> None:
    version = keep_version(source)
    with transaction(source) as session:
        session.execute(update(Version).values(document=b'{"format": "something else"}'))

    with pytest.raises(RuntimeError, match=f"version {version.id} is damaged"), read_session(source) as session:
        load_version(session, version.id)


def test_a_job_makes_one_version_only(source: Sessions) -> None:
    with transaction(source) as session:
        job = job_queue.enqueue(session, Job(kind=Kind.TRAIN, payload={}), max_attempts=3)
        models.add_version(session, new_version(), job_id=job.id)

    with pytest.raises(Conflict), transaction(source) as session:
        models.add_version(session, new_version(), job_id=job.id)
    with read_session(source) as session:
        assert session.scalars(select(Job.state)).all() == [State.QUEUED]


def _add_versions(settings: Settings, n_versions: int) -> None:
    engine = connect(settings)
    source = sessions(engine)
    for _ in range(n_versions):
        keep_version(source)
    engine.dispose()
