"""Data sets whose rows stay below the store: the same as uploaded ones, and never lost in silence."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import espalier
from service.database.engine import read_session
from service.database.tables import Kind
from service.errors import StoreUnavailable
from service.locked_folders import locked_folder
from service.repositories import datasets
from service.serialization.parquet_store import store_at
from service.settings import Settings
from service.usecases import doctor
from service.usecases.datasets import REGISTER_PREFIX
from service.worker.handlers import Failed, JobContext, Outcome, perform
from tests.service.buckets import Root, S3Server, in_folder, s3_server, to_parquet
from tests.service.conftest import Templates
from tests.service.served import Served, assert_problem, serving

N_ROWS = 600
SCHEMA = {
    "target": "class",
    "columns": [
        {"name": "size", "kind": "ordinal", "categories": ["S", "M", "L"]},
        {"name": "id", "role": "ignore"},
        {"name": "weight", "role": "weight"},
    ],
}


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(params=["file", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    """An empty store."""
    return in_folder(tmp_path / "store") if request.param == "file" else request.getfixturevalue("s3").bucket()


@pytest.fixture
def served(request: pytest.FixtureRequest, root: Root, tmp_path: Path, templates: Templates) -> Iterator[Served]:
    """An application with that store: a folder beside PostgreSQL, a bucket beside SQLite; neither knows the other."""
    kind = "postgresql" if root.url.startswith("file:") else "sqlite"
    with templates.copied(kind, tmp_path) as settings, serving(settings, store=root.url) as one:
        yield one


@pytest.fixture
def in_a_folder(on_sqlite: Settings, tmp_path: Path) -> Iterator[tuple[Served, Root]]:
    root = in_folder(tmp_path / "store")
    with serving(on_sqlite, store=root.url) as one:
        yield one, root


def table(n_rows: int = N_ROWS) -> pyarrow.Table:
    """Return columns of every kind, with missing cells; the first rows have the weight 0."""
    rows = range(n_rows)
    return pyarrow.table(
        {
            "age": [None if row % 11 == 0 else row * 37 % 90 for row in rows],
            "dose": [row * 17 % 23 / 7 for row in rows],
            "size": [("S", "M", "L", None)[row * 7 % 4] for row in rows],
            "town": pyarrow.array([("Ulm", "NA", "Bonn", "?")[row * 5 % 4] for row in rows]).dictionary_encode(),
            "new": [row % 3 == 0 for row in rows],
            "day": pyarrow.array([row * 86_400 for row in rows], pyarrow.timestamp("s")),
            "id": [f"k{row}" for row in rows],
            "weight": [0.0 if row < 250 else 1.0 + row % 2 for row in rows],
            "class": [int(row * 17 % 23 / 7 > 1.5 and row % 4 != 3) for row in rows],
        }
    )


def write_halves(root: Root) -> None:
    root.write("sales/a.parquet", table().slice(0, 350), row_group_size=100)
    root.write("sales/b.parquet", table().slice(350), row_group_size=100)


def register(served: Served, reference: object = "sales", schema: Any = SCHEMA) -> dict[str, Any]:
    response = served.post("/v1/datasets", {"reference": reference, "schema": schema})
    assert response.status_code == 201, response.text
    return response.get_json()


def refused(served: Served, reference: object, *pointers: str, status: int = 422, **more: object) -> dict[str, Any]:
    return assert_problem(served.post("/v1/datasets", {"reference": reference, **more}), status, *pointers)


def uploaded(served: Served) -> dict[str, Any]:
    """Upload the same table."""
    parts = {"file": (to_parquet(table()), "t.parquet"), "schema": json.dumps(SCHEMA)}
    response = served.client.post("/v1/datasets", data=parts)
    assert response.status_code == 201, response.text
    return response.get_json()


def shown(served: Served, data_set: dict[str, Any], path: str) -> Any:
    response = served.client.get(f"/v1/datasets/{data_set['id']}{path}")
    assert response.status_code == 200, response.text
    return response.get_json()


def job(served: Served, kind: Kind, **payload: Any) -> Outcome:
    """Do a job in this process."""
    context = JobContext(
        served.service.sessions, espalier.Progress(), "no job", send=pytest.fail, settings=served.settings
    )
    return perform(context, kind, payload)


def trained(served: Served, data_set: dict[str, Any], **payload: Any) -> Outcome:
    config = espalier.config_to_dict(espalier.training_config("c45"))
    return job(
        served,
        Kind.TRAIN,
        **{"model": "m", "dataset": data_set["id"], "preset": "c45", "config": config, "holdout": None, **payload},
    )


def test_files_below_the_store_are_the_same_data_set_as_the_table_uploaded(served: Served, root: Root) -> None:
    write_halves(root)

    one, other = register(served), uploaded(served)

    assert (one["reference"], other["reference"]) == ("sales", None)
    for name in ("n_rows", "schema", "fingerprint", "notices", "task"):
        assert one[name] == other[name]
    assert one["n_rows"] == N_ROWS
    for path in ("/rows?cursor=0&limit=3", "/rows?cursor=345&limit=10", "/rows?cursor=599&limit=5", "/profile"):
        assert shown(served, one, path) == shown(served, other, path)
    with read_session(served.service.sessions) as session:
        assert datasets.load_data_set(session, one["id"]) == datasets.load_data_set(session, other["id"])


def test_a_training_makes_the_same_document(served: Served, root: Root) -> None:
    write_halves(root)
    data_sets = [register(served), uploaded(served)]

    for limit in (None, 64_000_000):  # in memory and on disk
        documents = [trained(served, each, memory_limit=limit).document for each in data_sets]
        assert documents[0] == documents[1]


def test_parts_follow_one_another_from_any_row_on(served: Served, root: Root) -> None:
    write_halves(root)
    found = register(served)["id"]

    for start in (0, 7, 350, 420, 599, 600):
        parts = list(datasets.iterate_parts(served.service.sessions, found, max_rows=64, start=start))
        assert all(part.n_rows <= 64 for _, part in parts)
        assert [row["id"] for _, part in parts for row in part.rows()] == [f"k{row}" for row in range(start, N_ROWS)]
        at = start
        for first, part in parts:
            assert first == at
            at += part.n_rows


def test_pages_after_the_last_needed_row_are_not_read(in_a_folder: tuple[Served, Root]) -> None:
    served, root = in_a_folder
    numbers = np.random.default_rng(0).random(400_000)  # several pages in one group of rows
    root.write("sales.parquet", pyarrow.table({"x": numbers}), compression="zstd", use_dictionary=False)
    data_set, file = register(served, "sales.parquet", None), Path(root.path, "sales.parquet")
    times, content = (file.stat().st_atime_ns, file.stat().st_mtime_ns), bytearray(file.read_bytes())
    content[-500_000:-400_000] = bytes(100_000)
    file.write_bytes(content)
    os.utime(file, ns=times)

    assert served.client.get(f"/v1/datasets/{data_set['id']}/rows?cursor=399999").status_code == 503  # damaged
    items = shown(served, data_set, "/rows?cursor=1000&limit=3")["items"]
    assert [row["x"] for row in items] == numbers[1000:1003].tolist()


def test_a_changed_declaration_reads_the_files_again(served: Served, root: Root) -> None:
    write_halves(root)
    one, other = register(served), uploaded(served)
    changes = {"target": "new", "columns": [{"name": "age", "kind": "nominal"}, {"name": "dose", "role": "ignore"}]}

    responses = [served.client.patch(f"/v1/datasets/{each['id']}", json=changes) for each in (one, other)]

    changed, expected = (response.get_json() for response in responses)
    assert changed["fingerprint"] == expected["fingerprint"]
    assert changed["schema"] == expected["schema"]
    assert changed["reference"] == "sales"
    assert shown(served, one, "/rows?cursor=340&limit=20") == shown(served, other, "/rows?cursor=340&limit=20")


def test_the_page_says_where_the_rows_are(in_a_folder: tuple[Served, Root]) -> None:
    served, root = in_a_folder
    write_halves(root)
    one, other = (
        " ".join(served.client.get(f"/ui/datasets/{each['id']}").text.split())
        for each in (register(served), uploaded(served))
    )
    assert "its rows are below the store, in <code>sales</code> (2 files)" in one
    assert "its rows are in the database" in other


def test_a_cell_that_is_no_longer_missing_is_refused_with_its_column_and_the_remedy(served: Served, root: Root) -> None:
    root.write("sales.parquet", table())
    path = f"/v1/datasets/{register(served, 'sales.parquet')['id']}"
    problem = assert_problem(served.client.patch(path, json={"missing_values": ["?"]}), 422, "/missing_values")
    assert "column 'town'" in problem["detail"]
    assert "list its categories in columns" in problem["detail"]
    more = {"name": "town", "categories": ["Bonn", "Ulm", "NA"]}
    response = served.client.patch(path, json={"missing_values": ["?"], "columns": [more]})
    assert response.status_code == 200, response.text


def test_doctor_asks_the_store(served: Served, root: Root) -> None:
    def found() -> list[doctor.Finding]:
        return [finding for finding in doctor.examine_with(served.settings) if finding.check == "store"]

    root.write("a.parquet", table())
    assert [finding.level for finding in found()] == ["ok"]
    root.take_away()
    (finding,) = found()
    assert finding.level == "fault"
    assert "ESPALIER_STORE" in finding.message


def test_a_store_that_is_a_file_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "table.parquet"
    file.touch()
    with pytest.raises(StoreUnavailable, match="names a file, not a folder"):
        store_at(f"file://{file}").check()


def test_a_data_set_below_the_store_is_deleted_without_its_files(served: Served, root: Root) -> None:
    write_halves(root)
    assert served.client.delete(f"/v1/datasets/{register(served)['id']}").status_code == 204
    assert len(root.read("sales/a.parquet")) > 0


def test_files_with_other_columns_are_refused_by_name(served: Served, root: Root) -> None:
    root.write("sales/a.parquet", table())
    root.write("sales/b.parquet", table().drop(["dose"]).append_column("dose", [["x"] * N_ROWS]))

    problem = refused(served, "sales", "/dose")

    assert "sales/b.parquet" in problem["detail"]
    assert "nominal in this file and numeric in the first" in problem["detail"]


def test_half_a_parquet_file_is_refused_by_name(served: Served, root: Root) -> None:
    write_halves(root)
    content = root.read("sales/b.parquet")
    root.put("sales/b.parquet", content[: len(content) // 2])

    assert "sales/b.parquet: not a Parquet file" in refused(served, "sales", "")["detail"]


def rewrite(root: Root) -> None:
    content = bytearray(root.read("sales/b.parquet"))
    root.put("sales/b.parquet", bytes(content))  # as long as before


def cut(root: Root) -> None:
    root.put("sales/b.parquet", root.read("sales/b.parquet")[:-100])


def delete(root: Root) -> None:
    root.delete("sales/b.parquet")


@pytest.mark.parametrize(("change", "what"), [(cut, "has changed"), (delete, "is gone")])
def test_a_file_that_changed_is_named_and_no_job_is_tried_again(
    served: Served, root: Root, change: Callable[[Root], None], what: str
) -> None:
    write_halves(root)
    data_set, before = register(served), root.read("sales/b.parquet")
    change(root)

    problem = assert_problem(served.client.get(f"/v1/datasets/{data_set['id']}/rows?cursor=400"), 409)
    outcome = trained(served, data_set)

    assert f"'sales/b.parquet' below the store {what}" in problem["detail"]
    assert not problem["retryable"]
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable) == ("store_changed", False)
    assert shown(served, data_set, "/rows?cursor=0&limit=1")["items"][0]["id"] == "k0"  # of the other file
    assert data_set["id"] in {each["id"] for each in served.client.get("/v1/datasets").get_json()["items"]}
    if not root.url.startswith("file"):  # by its ETag an object that is put back is the same one
        root.put("sales/b.parquet", before)
        assert shown(served, data_set, "/rows?cursor=599&limit=1")["items"][0]["id"] == "k599"


def test_a_file_that_is_written_again_in_a_folder_has_changed(in_a_folder: tuple[Served, Root]) -> None:
    served, root = in_a_folder
    write_halves(root)
    data_set = register(served)
    rewrite(root)
    assert_problem(served.client.get(f"/v1/datasets/{data_set['id']}/rows?cursor=400"), 409)
    response = served.client.patch(f"/v1/datasets/{data_set['id']}", json={"target": "new"})
    assert_problem(response, 409)


def test_a_store_that_is_gone_may_come_back(served: Served, root: Root) -> None:
    write_halves(root)
    data_set = register(served)
    root.take_away()

    response = served.client.get(f"/v1/datasets/{data_set['id']}/rows")
    outcome = trained(served, data_set)

    assert "ESPALIER_STORE" in assert_problem(response, 503)["detail"]
    assert response.headers["Retry-After"]
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable) == ("store_unavailable", True)
    assert refused(served, "sales", status=503)["retryable"]


def test_a_bucket_whose_server_does_not_answer_may_come_back(on_sqlite: Settings, tmp_path: Path) -> None:
    with s3_server(tmp_path) as server:
        root = server.bucket()
        with serving(on_sqlite, store=root.url) as served:
            write_halves(root)
            data_set = register(served)
            server.stop()
            assert_problem(served.client.get(f"/v1/datasets/{data_set['id']}/rows"), 503)


def test_without_the_setting_nothing_is_registered_or_read(in_a_folder: tuple[Served, Root]) -> None:
    served, root = in_a_folder
    write_halves(root)
    data_set = register(served)
    with serving(replace(served.settings, store="none")) as other:
        assert "ESPALIER_STORE" in refused(other, "sales", "/reference")["detail"]
        response = other.client.get(f"/v1/datasets/{data_set['id']}/rows")
        assert "ESPALIER_STORE" in assert_problem(response, 503)["detail"]


ILLEGAL = [
    "", ".", "..", "../secret", "sales/../../secret", "sales/..", "/etc", "//sales", "sales//a.parquet", "sales/",
    ".hidden", "sales/.a.parquet", "_a", "file:///etc", "s3://bucket/a", "a\\b", "a\0b", "a\nb", "x" * 1001, 7, None,
    ["sales"], "%2e%2e/secret.parquet", "no_such", "sales/no.parquet", "sales/notes.txt",
]  # fmt: skip


@pytest.mark.parametrize("reference", ILLEGAL, ids=repr)
def test_a_reference_leads_to_parquet_files_below_the_root_only(
    in_a_folder: tuple[Served, Root], reference: object
) -> None:
    served, root = in_a_folder
    write_halves(root)
    root.put("sales/notes.txt", b"x")
    root.put("../secret.parquet", root.read("sales/a.parquet"))
    problem = refused(served, reference, "/reference")
    assert "secret.parquet" not in problem["detail"] or "%2e" in problem["detail"]


def test_symbolic_links_out_of_the_root_are_not_followed(in_a_folder: tuple[Served, Root], tmp_path: Path) -> None:
    served, root = in_a_folder
    write_halves(root)
    outside = in_folder(tmp_path / "outside")
    outside.write("t/a.parquet", table())
    (Path(root.path) / "link").symlink_to(tmp_path / "outside" / "t")
    (Path(root.path) / "sales" / "c.parquet").symlink_to(tmp_path / "outside" / "t" / "a.parquet")
    for reference in ("link", "link/a.parquet", "sales", "sales/c.parquet"):
        assert "symbolic link" in refused(served, reference, "/reference")["detail"]
    (Path(root.path) / "sales" / "c.parquet").unlink()
    data_set = register(served)
    (Path(root.path) / "sales" / "a.parquet").rename(tmp_path / "outside" / "moved.parquet")
    (Path(root.path) / "sales" / "a.parquet").symlink_to(tmp_path / "outside" / "moved.parquet")
    problem = assert_problem(served.client.get(f"/v1/datasets/{data_set['id']}/rows"), 409)
    assert "'sales/a.parquet' below the store has become a symbolic link" in problem["detail"]


def test_faults_of_the_declaration_have_their_places(in_a_folder: tuple[Served, Root]) -> None:
    served, root = in_a_folder
    write_halves(root)
    refused(served, "sales", "/schema/columns/0/kind", schema={"columns": [{"name": "age", "kind": "whole"}]})
    refused(served, "sales", "/rows", rows=[])
    refused(served, "sales", "", schema={"target": "price"})


def test_hidden_files_of_a_folder_are_left_out_and_folders_in_it_refused(in_a_folder: tuple[Served, Root]) -> None:
    served, root = in_a_folder
    write_halves(root)
    root.put("sales/_SUCCESS", b"")
    root.put("sales/.a.parquet.crc", b"x")
    assert register(served)["n_rows"] == N_ROWS
    root.write("sales/more/c.parquet", table())
    assert "sales/more" in refused(served, "sales", "/reference")["detail"]


@pytest.mark.parametrize("root", ["file"], indirect=True)
def test_a_folder_in_a_folder_is_refused_whatever_its_name(served: Served, root: Root) -> None:
    write_halves(root)
    root.write("sales/more.parquet/c.parquet", table())
    assert "'sales/more.parquet' is a folder" in refused(served, "sales", "/reference")["detail"]
    assert register(served, "sales/more.parquet")["n_rows"] == N_ROWS


def test_registering_takes_memory_that_does_not_grow_with_the_table(in_a_folder: tuple[Served, Root]) -> None:
    """A table of 400 MB in its columns is read in a process that may have 256 MB."""
    served, root = in_a_folder
    with serving(replace(served.settings, reader_memory_mb=256)) as small:
        column = pyarrow.array([row % 1000 / 7 for row in range(1_250_000)])
        wide = pyarrow.table({f"x{place}": column for place in range(40)})
        root.write("wide.parquet", wide, row_group_size=25_000)
        data_set = register(small, "wide.parquet", schema={"target": "x0"})
    assert data_set["n_rows"] == 1_250_000


# A killed registration

KILLED = """
import os, sys
from service.settings import Settings
from service.usecases import datasets
datasets.run_order = lambda *_, **__: os.kill(os.getpid(), 9)  # the folder is made
datasets.registered_data_set("sales", settings=Settings(store=sys.argv[1], work=sys.argv[2]))
"""


def test_the_folder_of_a_killed_registration_is_removed_by_the_next_one(on_sqlite: Settings, tmp_path: Path) -> None:
    root, work = in_folder(tmp_path / "store"), tmp_path / "work"
    write_halves(root)
    work.mkdir()
    killed = subprocess.run([sys.executable, "-c", KILLED, root.url, str(work)], check=False)
    assert killed.returncode == -signal.SIGKILL
    [left] = work.iterdir()
    assert left.name.startswith(REGISTER_PREFIX)
    with serving(on_sqlite, store=root.url, work=str(work)) as served:
        register(served)
        assert list(work.iterdir()) == []
        with locked_folder(REGISTER_PREFIX, work) as used:
            register(served)
            assert list(work.iterdir()) == [used]  # a registration that goes on


def test_the_folder_for_temporary_files_is_created(on_sqlite: Settings, tmp_path: Path) -> None:
    root, work = in_folder(tmp_path / "store"), tmp_path / "no" / "work"
    write_halves(root)
    with serving(on_sqlite, store=root.url, work=str(work)) as served:
        register(served)
    assert list(work.iterdir()) == []
