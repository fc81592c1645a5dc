"""Data sets over HTTP."""

import io
import json
from collections.abc import Iterator

import pytest
from sqlalchemy import event

from service.repositories import datasets
from service.settings import Settings
from tests.service.served import TENNIS, UNKNOWN, Served, assert_problem, serving


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


def test_an_uploaded_csv_is_shown_with_its_columns(served: Served) -> None:
    shown = served.upload(TENNIS, name="tennis", target="PlayTennis")
    assert (shown["name"], shown["n_rows"], shown["n_attributes"], shown["task"]) == ("tennis", 14, 4, "classification")
    assert shown["schema"]["target"] == "PlayTennis"
    assert [column["name"] for column in shown["schema"]["columns"]] == TENNIS.split("\n", 1)[0].split(",")
    assert served.client.get(f"/v1/datasets/{shown['id']}").get_json() == shown


def test_the_answer_to_an_upload_says_where_the_data_set_is(served: Served) -> None:
    response = served.client.post("/v1/datasets", data="a,b\n1,x\n", content_type="text/csv")
    assert response.headers["Location"] == f"/v1/datasets/{response.get_json()['id']}"


def test_the_same_table_as_rows_and_as_columns_has_the_same_fingerprint(served: Served) -> None:
    rows = {"rows": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]}
    columns = {"columns": {"a": [1, 2], "b": ["x", "y"]}}
    first, second = (served.post("/v1/datasets?target=b", body).get_json() for body in (rows, columns))
    assert first["fingerprint"] == second["fingerprint"]
    assert first["id"] != second["id"]


def test_a_declared_schema_decides_the_kinds(served: Served) -> None:
    body = {"rows": [{"zip": 100, "y": "a"}], "schema": {"columns": [{"name": "zip", "kind": "nominal"}]}}
    shown = served.post("/v1/datasets", body).get_json()
    assert [column["kind"] for column in shown["schema"]["columns"]] == ["nominal", "nominal"]


def test_the_query_names_weight_ignored_columns_and_missing_values(served: Served) -> None:
    shown = served.upload("id,w,a,y\n1,2,-,p\n2,3,4,q\n", target="y", weight="w", ignore="id", missing_values="-, none")
    roles = {column["name"]: column["role"] for column in shown["schema"]["columns"]}
    assert roles == {"id": "ignore", "w": "weight", "a": "attribute", "y": "target"}
    assert shown["schema"]["missing_values"] == ["-", "none"]


def test_rows_come_back_in_order_page_by_page(served: Served) -> None:
    shown = served.upload(TENNIS, target="PlayTennis")
    first = served.client.get(f"/v1/datasets/{shown['id']}/rows?limit=10").get_json()
    second = served.client.get(f"/v1/datasets/{shown['id']}/rows?limit=10&cursor={first['next']}").get_json()
    names, *lines = (line.split(",") for line in TENNIS.splitlines())
    assert first["items"] + second["items"] == [dict(zip(names, line, strict=True)) for line in lines]
    assert (first["next"], second["next"]) == (10, None)


def test_data_sets_are_listed_newest_first_page_by_page(served: Served) -> None:
    ids = [served.upload("a,b\n1,x\n", name=name)["id"] for name in ("one", "two", "three")]
    first = served.client.get("/v1/datasets?limit=2").get_json()
    second = served.client.get(f"/v1/datasets?limit=2&cursor={first['next']}").get_json()
    assert [item["id"] for item in first["items"] + second["items"]] == ids[::-1]
    assert second["next"] is None


def test_a_page_takes_the_same_number_of_queries_however_many_data_sets_it_has(served: Served) -> None:
    counts, statements = [], []
    event.listen(served.service.sessions.engine, "before_cursor_execute", lambda *cursor: statements.append(cursor[2]))
    for _ in range(3):
        served.upload("a,b\n1,x\n")
        statements.clear()
        assert served.client.get("/v1/datasets").status_code == 200
        counts.append(len(statements))
    assert counts == counts[:1] * 3


def test_a_page_of_data_sets_with_many_categories_ends_early(served: Served) -> None:
    table = "id,b\n" + "".join(f"{number:010d}x,1\n" for number in range(1000))  # the categories take 14 kB as JSON
    ids = [served.upload(text)["id"] for text in (table, table, table, "a,b\n1,x\n")]
    pages, cursor = [], ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "MAX_LISTED_CHARS", 20_000)
        while len(pages) < 5 and cursor is not None:
            shown = served.client.get(f"/v1/datasets?limit=4{cursor and f'&cursor={cursor}'}").get_json()
            pages.append([item["id"] for item in shown["items"]])
            cursor = shown["next"]
    assert pages == [ids[:0:-1], ids[:1]]


def test_a_deleted_data_set_is_gone(served: Served) -> None:
    shown = served.upload("a,b\n1,x\n")
    assert served.client.delete(f"/v1/datasets/{shown['id']}").status_code == 204
    assert_problem(served.client.get(f"/v1/datasets/{shown['id']}"), 404)
    assert_problem(served.client.delete(f"/v1/datasets/{shown['id']}"), 404)


def test_a_data_set_with_a_version_cannot_be_deleted(served: Served) -> None:
    served.train("tennis")
    kept = served.client.get("/v1/datasets").get_json()["items"][0]["id"]
    assert "tennis" in assert_problem(served.client.delete(f"/v1/datasets/{kept}"), 409)["detail"]


def test_a_data_set_of_an_unfinished_job_cannot_be_deleted(served: Served) -> None:
    used = served.upload(TENNIS, target="PlayTennis")["id"]
    job = served.post("/v1/training-jobs", {"model": "tennis", "dataset": used}).get_json()
    assert job["id"] in assert_problem(served.client.delete(f"/v1/datasets/{used}"), 409)["detail"]


@pytest.mark.parametrize(
    ("csv", "query", "pointer"),
    [
        pytest.param(b"\x89PNG\r\n\x1a\n\0", "", "", id="not CSV"),
        pytest.param(b"", "", "", id="an empty file"),
        pytest.param(b"a,b\n", "", "", id="no rows"),
        pytest.param(b"a,b\n1\n", "", "", id="a ragged line"),
        pytest.param(b"a,b\n1,2\n", "target=c", "/target", id="a target that does not exist"),
        pytest.param(b"a,b\n1,2\n", "task=guessing", "/task", id="an unknown task"),
        pytest.param(b"a,b\n1,2\n", "task=regression", "/task", id="a task without a target"),
        pytest.param(b"a,b\n1,2\n", "name=", "/name", id="an empty name"),
        pytest.param(b"a,b\n1,2\n", "name=a%00b", "/name", id="NUL in the name"),
        pytest.param(b"a,b\n1,2\n", "missing_values=a%00b", "/missing_values", id="NUL in what stands for missing"),
        pytest.param(b"a,b\n1,2\n", "nome=x", "/nome", id="a misspelt parameter"),
    ],
)
def test_bad_csv_is_refused_with_its_place(served: Served, csv: bytes, query: str, pointer: str) -> None:
    response = served.client.post(f"/v1/datasets?{query}", data=csv, content_type="text/csv")
    assert_problem(response, 422, pointer)


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        pytest.param([], [""], id="a list"),
        pytest.param({}, [""], id="neither rows nor columns"),
        pytest.param({"rows": [], "columns": {}}, [""], id="both"),
        pytest.param({"rows": []}, ["/rows"], id="no rows"),
        pytest.param({"rows": [{"a": 1}, 2]}, ["/rows/1"], id="a row that is no object"),
        pytest.param({"columns": {"a": [1], "b": [1, 2]}}, ["/columns"], id="ragged columns"),
        pytest.param({"columns": {"a": [[]]}}, ["/columns/a"], id="a cell that is a list"),
        pytest.param({"rows": [{"a": 1}], "skema": {}}, ["/skema"], id="an unknown key"),
        pytest.param(
            {"rows": [{"a": 1}], "schema": {"columns": [{"name": "a", "kind": "colour"}]}},
            ["/schema/columns/0/kind"],
            id="an unknown kind",
        ),
        pytest.param(
            {"rows": [{"a": 1}], "schema": {"missing_values": "u"}}, ["/schema/missing_values"], id="no list of texts"
        ),
        pytest.param(
            {"rows": [{"a": 1}], "schema": {"task": "regression"}}, ["/schema/task"], id="a task without a target"
        ),
    ],
)
def test_a_bad_json_table_is_refused_with_its_place(served: Served, body: object, pointers: list[str]) -> None:
    assert_problem(served.post("/v1/datasets", body), 422, *pointers)


def test_more_columns_than_allowed_are_too_large(settings: Settings) -> None:
    with serving(settings, max_columns=2) as served:
        response = served.client.post("/v1/datasets", data="a,b,c\n1,2,3\n", content_type="text/csv")
        assert "at most 2" in assert_problem(response, 413)["detail"]


def test_a_declaration_of_more_columns_than_allowed_is_not_read(settings: Settings) -> None:
    with serving(settings, max_columns=2) as served:
        schema = io.BytesIO(json.dumps({"columns": [{}, {}, {}]}).encode())
        parts = {"file": (io.BytesIO(b"a,b\n1,x\n"), "t.csv"), "schema": (schema, "schema.json")}
        problem = assert_problem(served.client.post("/v1/datasets", data=parts), 413)
    assert problem["detail"] == "too many columns: at most 2 are allowed"


@pytest.mark.parametrize("path", ["", "/rows"])
def test_an_unknown_data_set_is_not_found(served: Served, path: str) -> None:
    assert_problem(served.client.get(f"/v1/datasets/{UNKNOWN}{path}"), 404)


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x"])
def test_a_limit_outside_1_to_200_is_refused(served: Served, query: str) -> None:
    assert_problem(served.client.get(f"/v1/datasets?{query}"), 422, "/limit")


def test_a_cursor_that_no_page_gave_is_refused(served: Served) -> None:
    assert_problem(served.client.get("/v1/datasets?cursor=%27%20or%201"), 422, "/cursor")
