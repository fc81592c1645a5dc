"""A data set in a bucket of S3, read by real web and worker processes, also after the bucket was away."""

from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest

import espalier
from tests.acceptance.running import Running, running, until
from tests.service.buckets import Root, s3_server

N_ROWS = 2_000


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        one = server.bucket()
        write(one)
        yield one


@pytest.fixture(scope="module")
def service(bucket: Root, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service"), ESPALIER_STORE=bucket.url) as one:
        yield one


def table(first: int) -> pyarrow.Table:
    rows = range(first, first + N_ROWS // 2)
    return pyarrow.table(
        {
            "a": [row * 37 % 101 for row in rows],
            "b": [None if row % 9 == 0 else "xyz"[row % 3] for row in rows],
            "y": ["yes" if row * 37 % 101 > 40 and row % 3 else "no" for row in rows],
        }
    )


def write(bucket: Root) -> None:
    for name, first in (("a", 0), ("b", N_ROWS // 2)):
        bucket.write(f"t/{name}.parquet", table(first), row_group_size=300)


def register(service: Running) -> str:
    response = service.client.post("/v1/datasets", params={"target": "y"}, json={"reference": "t"})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def job(service: Running, path: str, **body: Any) -> dict[str, Any]:
    finished = service.finished(service.post(path, body, status=202))
    assert finished["state"] == "succeeded", finished
    return finished


def test_every_job_reads_a_bucket(service: Running) -> None:
    expected = espalier.dataset_from_arrow(pyarrow.concat_tables([table(0), table(N_ROWS // 2)]), target="y")

    data_set = register(service)
    assert service.get(f"/v1/datasets/{data_set}")["fingerprint"] == expected.fingerprint
    service.train("m", data_set)
    service.train("m", data_set, memory_limit=64_000_000)
    trees = [service.get(f"/v1/models/m/versions/{number}/document")["tree"] for number in (1, 2)]
    assert trees[0] == trees[1]
    predicted = job(service, "/v1/prediction-jobs", model="m", dataset=data_set)
    assert predicted["result"]["n_rows"] == N_ROWS
    held_out = service.upload("a,b,y\n1,x,no\n50,y,yes\n60,z,yes\n2,x,no\n", target="y")
    service.train("m", held_out, holdout={"dataset": data_set})
    job(service, "/v1/pruning-jobs", model="m", version=1, method="reduced_error", holdout={"dataset": held_out})
    job(
        service,
        "/v1/evaluation-jobs",
        dataset=data_set,
        candidates=[{"preset": "cart"}, {"preset": "c45"}],
        folds=2,
    )


def test_a_training_goes_on_when_the_bucket_is_back(service: Running, bucket: Root) -> None:
    content = {name: bucket.read(name) for name in ("t/a.parquet", "t/b.parquet")}

    data_set = register(service)
    bucket.take_away()
    try:
        begun = service.post("/v1/training-jobs", {"model": "goes-on", "dataset": data_set}, status=202)
        failed = until(
            lambda: (found := service.get(f"/v1/jobs/{begun['id']}"))["error"] is not None and found,
            what="the first attempt",
        )
    finally:
        bucket.system.create_dir(bucket.path)
        for name, each in content.items():
            bucket.put(name, each)
    assert failed["error"]["code"] == "store_unavailable"
    assert service.finished(begun)["state"] == "succeeded"
