"""A request that looks at a data set, or declares it anew, takes memory that does not grow with the data set."""

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from werkzeug.test import TestResponse

import espalier
from service.settings import Settings
from tests.service.kept import keep_data_set
from tests.service.served import Served, assert_problem, serving

N_ROWS = 1_000_000
PEAK_MB = 48  # the whole table has 32 MB in its columns, and much more as Python objects
FEATURES = (
    espalier.Feature("half", espalier.FeatureKind.NUMERIC),
    espalier.Feature("sorted", espalier.FeatureKind.NUMERIC),
    espalier.Feature("noise", espalier.FeatureKind.NUMERIC),
    espalier.Feature("y", espalier.FeatureKind.NUMERIC, espalier.Role.TARGET),
)


@pytest.fixture
def served(shared_sqlite: Settings) -> Iterator[Served]:
    with serving(shared_sqlite) as one:
        yield one


def keep_table(served: Served, n_rows: int = N_ROWS) -> str:
    """Store a table whose target is 10 in the second half of the rows and 0 in the first."""
    rows = np.arange(n_rows, dtype=float)
    half = (rows >= n_rows // 2).astype(float)
    noise = np.random.default_rng(1).normal(size=n_rows)
    table = espalier.Dataset(espalier.Schema(FEATURES), (half, rows, noise, 10 * half))
    return keep_data_set(served.service.sessions, table)


def peak_megabytes(ask: Callable[[], TestResponse]) -> tuple[float, Any]:
    tracemalloc.start()
    try:
        response = ask()
        peak = tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()
    assert response.status_code == 200, response.text
    return peak, response.get_json()


def test_the_profile_of_a_large_data_set_is_that_of_rows_spread_evenly_over_it(served: Served) -> None:
    data_set = keep_table(served)
    peak, shown = peak_megabytes(lambda: served.client.get(f"/v1/datasets/{data_set}/profile"))
    assert peak < PEAK_MB
    assert shown["sample"] == shown["n_rows"] == 250_000  # a million cells in four columns
    assert shown["mean"] == pytest.approx(5, abs=0.1)
    half, in_order, noise = shown["attributes"]
    assert half["variance_decrease"] == pytest.approx(shown["variance"])
    assert in_order["threshold"] == pytest.approx(N_ROWS / 2, rel=0.1)
    assert noise["variance_decrease"] < shown["variance"] / 100


def test_of_a_data_set_of_at_most_a_million_cells_all_rows_are_read(served: Served) -> None:
    shown = served.client.get(f"/v1/datasets/{keep_table(served, 250_000)}/profile").get_json()
    assert (shown["sample"], shown["n_rows"], shown["mean"]) == (None, 250_000, 5)


def test_the_columns_that_are_ignored_do_not_count_towards_the_cells_of_a_profile(served: Served) -> None:
    data_set = keep_table(served, 300_000)
    columns = [{"name": "sorted", "role": "ignore"}, {"name": "noise", "role": "ignore"}]
    assert served.client.patch(f"/v1/datasets/{data_set}", json={"columns": columns}).status_code == 200
    shown = served.client.get(f"/v1/datasets/{data_set}/profile").get_json()
    assert (shown["sample"], shown["n_rows"]) == (None, 300_000)


def test_a_large_data_set_is_declared_anew_outside_the_web_process(served: Served) -> None:
    data_set = keep_table(served)
    changes = {"target": "half", "columns": [{"name": "y", "kind": "nominal"}]}
    peak, shown = peak_megabytes(lambda: served.client.patch(f"/v1/datasets/{data_set}", json=changes))
    assert peak < PEAK_MB
    assert shown["task"] == "classification"
    assert [column.get("categories") for column in shown["schema"]["columns"]] == [[0, 1], None, None, [0, 10]]
    assert shown == served.client.get(f"/v1/datasets/{data_set}").get_json()
    last = served.client.get(f"/v1/datasets/{data_set}/rows?cursor={N_ROWS - 1}").get_json()["items"]
    assert [(row["half"], row["sorted"], row["y"]) for row in last] == [(1, N_ROWS - 1, 10)]


def test_what_is_wrong_with_the_declaration_of_a_large_data_set_is_placed_as_of_a_small_one(served: Served) -> None:
    for n_rows in (1_000, N_ROWS):
        data_set = keep_table(served, n_rows)
        changes = {"columns": [{"name": "none"}, {"name": "y", "kind": "boolean"}]}
        assert_problem(served.client.patch(f"/v1/datasets/{data_set}", json=changes), 422, "/columns/0/name")
        assert served.client.get(f"/v1/datasets/{data_set}").get_json()["schema"]["target"] == "y"


def test_a_large_data_set_that_the_sandbox_has_no_memory_for_stays_as_it_is(served: Served) -> None:
    data_set = keep_table(served)
    before = served.client.get(f"/v1/datasets/{data_set}").get_json()
    with serving(served.settings, reader_memory_mb=64) as cramped:
        cramped_client = cramped.client
        problem = assert_problem(cramped_client.patch(f"/v1/datasets/{data_set}", json={"target": "half"}), 413)
        assert "memory" in problem["detail"]
        assert cramped_client.get(f"/v1/datasets/{data_set}").get_json() == before
