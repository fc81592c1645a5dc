"""Data sets looked at from their target, and declared anew without another upload."""

import io
import math
from collections.abc import Iterator
from typing import Any

import orjson
import pandas
import pytest

from service.settings import Settings
from tests.service.served import HOURS, ON_SQLITE, TENNIS, Served, assert_problem, serving

MIXED = """when,size,grade,light,weight,answer
2024-01-01,3,low,true,1,yes
2024-01-02,4,high,false,2,no
2024-01-03,,mid,true,1,yes
2024-01-04,9,low,false,2,no
2024-01-05,7,high,,1,yes
2024-01-06,8,mid,false,1,no
"""


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


def rows(served: Served, data_set: str) -> list[dict[str, Any]]:
    return served.client.get(f"/v1/datasets/{data_set}/rows").get_json()["items"]


def columns(shown: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {column["name"]: column for column in shown["schema"]["columns"]}


def codes(shown: dict[str, Any]) -> set[tuple[str, str]]:
    return {(notice["code"], notice["attribute"]) for notice in shown["notices"]}


def change(served: Served, data_set: str, **changes: Any) -> dict[str, Any]:
    response = served.client.patch(f"/v1/datasets/{data_set}", json=changes)
    assert response.status_code == 200, response.text
    return response.get_json()


def profile(served: Served, data_set: str, query: str = "") -> dict[str, Any]:
    response = served.client.get(f"/v1/datasets/{data_set}/profile{query}")
    assert response.status_code == 200, response.text
    return response.get_json()


def kinds(shown: dict[str, Any]) -> dict[str, str]:
    return {column["name"]: column["kind"] for column in shown["schema"]["columns"]}


# --- profiles


@pytest.mark.parametrize(("base", "unit", "factor"), [("2", "bits", 1.0), ("e", "nats", math.log(2))])
def test_the_profile_has_the_gains_of_the_textbook(served: Served, base: str, unit: str, factor: float) -> None:
    shown = profile(served, served.upload(TENNIS, target="PlayTennis")["id"], f"?log_base={base}")

    gains = {attribute["name"]: attribute["gain"] / factor for attribute in shown["attributes"]}
    # Quinlan (1986), section 4: 0.246, 0.029, 0.151 and 0.048 bits.
    expected = {"Outlook": 0.2467, "Temperature": 0.0292, "Humidity": 0.1518, "Wind": 0.0481}
    assert gains == pytest.approx(expected, abs=5e-5)
    assert shown["unit"] == unit
    assert [one["share"] for one in shown["classes"]] == pytest.approx([5 / 14, 9 / 14])


def test_a_data_set_of_every_kind_has_a_profile(served: Served) -> None:
    data_set = served.upload(MIXED, target="answer", weight="weight")["id"]
    order = ["low", "mid", "high"]
    change(
        served,
        data_set,
        columns=[
            {"name": "when", "kind": "datetime"},
            {"name": "grade", "kind": "ordinal", "categories": order},
            {"name": "light", "kind": "boolean"},
        ],
    )

    shown = profile(served, data_set)

    found = {attribute["name"]: attribute for attribute in shown["attributes"]}
    assert {name: one["kind"] for name, one in found.items()} == {
        "when": "datetime", "size": "numeric", "grade": "ordinal", "light": "boolean"
    }  # fmt: skip
    assert {name: one["n_missing"] for name, one in found.items()} == {"when": 0, "size": 1, "grade": 0, "light": 1}
    assert shown["weight"] == 8
    assert found["grade"]["threshold"] in order


def test_the_profile_of_numbers_has_the_decrease_of_their_variance(served: Served) -> None:
    shown = profile(served, served.upload(HOURS, target="hours")["id"])
    hours = [10, 12, 11, 30.5, 31, 33]
    mean = sum(hours) / 6
    within = (2 + sum((one - 31.5) ** 2 for one in hours[3:])) / 6
    assert (shown["task"], shown["mean"]) == ("regression", pytest.approx(mean))
    expected = sum((one - mean) ** 2 for one in hours) / 6 - within
    assert shown["attributes"][0]["variance_decrease"] == pytest.approx(expected)


def test_without_a_target_there_is_nothing_to_say(served: Served) -> None:
    data_set = served.upload(TENNIS)["id"]
    assert "target" in assert_problem(served.client.get(f"/v1/datasets/{data_set}/profile"), 409)["detail"]
    assert_problem(served.client.get(f"/v1/datasets/{data_set}/profile?log_base=3"), 422, "/log_base")


# --- declared anew


def test_a_target_can_be_declared_after_the_upload_and_changed(served: Served) -> None:
    data_set = served.upload(TENNIS)["id"]
    assert change(served, data_set, target="PlayTennis")["task"] == "classification"
    shown = change(served, data_set, target="Wind")
    assert shown["schema"]["target"] == "Wind"
    assert shown == served.client.get(f"/v1/datasets/{data_set}").get_json()
    assert shown["fingerprint"] == served.upload(TENNIS, target="Wind")["fingerprint"]
    assert change(served, data_set, target=None)["task"] is None


def test_a_new_target_of_few_whole_numbers_is_a_class_unless_the_task_says_otherwise(served: Served) -> None:
    data_set = served.upload("a,y\n1.5,0\n2.5,1\n3.5,1\n")["id"]
    assert change(served, data_set, target="y")["task"] == "classification"
    shown = change(served, data_set, task="regression")
    assert (shown["task"], kinds(shown)["y"]) == ("regression", "numeric")
    assert (
        shown["fingerprint"]
        == served.upload("a,y\n1.5,0\n2.5,1\n3.5,1\n", target="y", task="regression")["fingerprint"]
    )


def test_kinds_roles_and_the_order_of_categories_are_changed_and_the_rows_stay(served: Served) -> None:
    data_set = served.upload(MIXED, target="answer")["id"]
    before = served.client.get(f"/v1/datasets/{data_set}/rows").get_json()["items"]

    shown = change(
        served,
        data_set,
        columns=[
            {"name": "grade", "kind": "ordinal", "categories": ["low", "mid", "high"]},
            {"name": "size", "kind": "nominal"},
            {"name": "weight", "role": "weight"},
        ],
    )

    columns = {column["name"]: column for column in shown["schema"]["columns"]}
    assert columns["grade"]["categories"] == ["low", "mid", "high"]
    assert columns["size"] == {"name": "size", "kind": "nominal", "role": "attribute", "categories": [3, 4, 7, 8, 9]}
    assert columns["weight"]["role"] == "weight"
    assert served.client.get(f"/v1/datasets/{data_set}/rows").get_json()["items"] == before
    assert change(served, data_set, columns=[{"name": "size", "kind": "numeric"}])["n_rows"] == 6


@pytest.mark.parametrize("order", [[True, 1], [7.0, 7]])
def test_the_order_of_categories_that_are_equal_in_python_is_changed_and_the_rows_stay(
    served: Served, order: list[Any]
) -> None:
    before = [{"k": label, "y": "p"} for label in (*order, order[0])]
    table = {"rows": before, "schema": {"columns": [{"name": "k", "kind": "nominal", "categories": order[::-1]}]}}
    response = served.client.post("/v1/datasets", json=table)
    assert response.status_code == 201, response.text
    data_set = response.get_json()["id"]

    shown = change(served, data_set, columns=[{"name": "k", "categories": order}])

    stored = served.client.get(f"/v1/datasets/{data_set}").get_json()
    assert orjson.dumps(columns(stored)["k"]["categories"]) == orjson.dumps(order)
    assert orjson.dumps(stored) == orjson.dumps(shown)
    assert orjson.dumps([row["k"] for row in rows(served, data_set)]) == orjson.dumps([row["k"] for row in before])


def test_another_text_for_missing_takes_its_category_away(served: Served) -> None:
    data_set = served.upload("a,b,y\n-,u,p\n1,v,q\n2,-,p\n", target="y")["id"]
    shown = change(served, data_set, missing_values=["-"], columns=[{"name": "a", "kind": "numeric"}])
    assert kinds(shown) == {"a": "numeric", "b": "nominal", "y": "nominal"}
    assert shown["schema"]["columns"][1]["categories"] == ["u", "v"]
    rows = served.client.get(f"/v1/datasets/{data_set}/rows").get_json()["items"]
    assert [(row["a"], row["b"]) for row in rows] == [(None, "u"), (1, "v"), (2, None)]


def test_a_number_that_now_means_missing_is_missing_in_every_kind_of_column(served: Served) -> None:
    table = "x,n,b,s,y\n-999,-999,true,-999,p\n1,1,false,u,q\n2,2,true,v,p\n3,1,,u,q\n"
    schema = {"columns": [{"name": "n", "kind": "nominal", "categories": [-999.0, 1.0, 2.0]}]}
    csv = {"file": (io.BytesIO(table.encode()), "t.csv"), "schema": orjson.dumps(schema).decode()}
    response = served.client.post("/v1/datasets?target=y", data=csv)
    assert response.status_code == 201, response.text
    data_set = response.get_json()["id"]

    shown = change(served, data_set, missing_values=["-999", "true"])

    cells = {name: [row[name] for row in rows(served, data_set)] for name in "xnbs"}
    assert cells == {
        "x": [None, 1, 2, 3], "n": [None, 1, 2, 1], "b": [None, False, None, None], "s": [None, "u", "v", "u"]
    }  # fmt: skip
    assert {name: columns(shown)[name].get("categories") for name in "xnbs"} == {
        "x": None, "n": [1, 2], "b": [False], "s": ["u", "v"]
    }  # fmt: skip
    assert kinds(shown) == {"x": "numeric", "n": "nominal", "b": "boolean", "s": "nominal", "y": "nominal"}


def test_a_number_that_now_means_missing_keeps_the_notices_of_other_columns(served: Served) -> None:
    table = "x,k,t,y\n" + "".join(f"{n}.5,{n:03},2020-01-01T00:00:00.1234567,{n}\n" for n in range(12))
    stored = served.upload(table, target="y")["id"]
    before = change(served, stored, columns=[{"name": "t", "kind": "datetime"}])
    assert codes(before) > {("leading_zeros", "k"), ("target_kind", "y")}
    assert codes(change(served, stored, missing_values=["-999"])) == codes(before)


def test_another_text_that_looks_like_missing_stays_a_notice(served: Served) -> None:
    data_set = served.upload("x,y\nu,p\n-,q\nnull,p\nv,q\n", target="y")["id"]
    notices = [change(served, data_set, missing_values=["?", "NA", text])["notices"] for text in ("-", "null")]
    assert [[cell["value"] for one in found for cell in one["cells"]] for found in notices] == [["null"], []]


def test_a_date_that_now_means_missing_is_missing(served: Served) -> None:
    data_set = served.upload("t,y\n1900-01-01,p\n2024-01-01,q\n")["id"]
    change(served, data_set, columns=[{"name": "t", "kind": "datetime"}])
    change(served, data_set, missing_values=["1900-01-01"])
    assert [row["t"] for row in rows(served, data_set)] == [None, "2024-01-01"]


def test_a_missing_target_is_refused_when_a_class_now_means_missing(served: Served) -> None:
    data_set = served.upload("x,y\n1.5,-999\n2.5,1\n3.5,2\n", target="y")["id"]
    response = served.client.patch(f"/v1/datasets/{data_set}", json={"missing_values": ["-999"]})
    assert response.status_code == 422, response.text
    assert [fault["pointer"] for fault in response.get_json()["errors"]] == ["/target"]


def test_an_ignored_column_that_gets_another_role_keeps_its_declaration(served: Served) -> None:
    order = ["low", "mid", "high"]
    table = {
        "rows": [{"zip": "01067", "grade": "low"}, {"zip": "1067", "grade": "high"}],
        "schema": {
            "columns": [{"name": "zip", "kind": "nominal"}, {"name": "grade", "kind": "ordinal", "categories": order}]
        },
    }
    response = served.client.post("/v1/datasets", json=table)
    assert response.status_code == 201, response.text
    data_set = response.get_json()["id"]
    before = response.get_json()["schema"]["columns"]

    change(served, data_set, columns=[{"name": name, "role": "ignore"} for name in ("zip", "grade")])
    change(served, data_set, columns=[{"name": "zip"}])  # still ignored
    shown = change(served, data_set, columns=[{"name": name, "role": "attribute"} for name in ("zip", "grade")])

    assert shown["schema"]["columns"] == before
    assert [row["zip"] for row in rows(served, data_set)] == ["01067", "1067"]


def test_ignored_numbers_that_get_another_role_are_numbers_as_if_never_ignored(served: Served) -> None:
    csv = "x,z,w,y\n1,0.5,2,3\n2,1.5,1,4\n3,2.5,1,5\n"
    data_set = served.upload(csv, ignore="x,z,w,y")["id"]
    roles = [{"name": "x", "role": "attribute"}, {"name": "z", "role": "attribute"}, {"name": "w", "role": "weight"}]
    shown = change(served, data_set, target="y", columns=roles)
    expected = served.upload(csv, target="y", weight="w")
    assert (shown["schema"], shown["fingerprint"]) == (expected["schema"], expected["fingerprint"])


def test_a_former_target_of_numbers_has_the_kind_of_an_attribute(served: Served) -> None:
    csv = "grade,y\n" + "".join(f"{n % 9 + 1},{'pq'[n % 2]}\n" for n in range(30))
    data_set = served.upload(csv, target="grade")["id"]
    shown, expected = change(served, data_set, target="y"), served.upload(csv, target="y")
    assert kinds(shown)["grade"] == "numeric"
    assert (shown["fingerprint"], codes(shown)) == (expected["fingerprint"], codes(expected))
    change(served, data_set, target="grade")
    shown = change(served, data_set, target=None, columns=[{"name": "grade", "kind": "nominal"}])
    assert columns(shown)["grade"]["categories"] == [*range(1, 10)]


def test_a_former_target_of_texts_keeps_its_categories(served: Served) -> None:
    data_set = served.upload("k,y\nx1,1.5\nx2,2.5\n", target="k")["id"]
    change(served, data_set, columns=[{"name": "k", "kind": "nominal", "categories": ["x2", "x1"]}])
    shown = change(served, data_set, target="y")
    assert columns(shown)["k"]["categories"] == ["x2", "x1"]


def test_a_later_target_has_the_classes_and_the_notice_of_an_uploaded_one(served: Served) -> None:
    csv = "x,y\n1.5,0\n2.5,1\n3.5,2\n0.5,1\n"
    shown, expected = change(served, served.upload(csv)["id"], target="y"), served.upload(csv, target="y")
    assert orjson.dumps(columns(shown)["y"]["categories"]) == b"[0,1,2]"
    assert shown["schema"] == expected["schema"]
    assert shown["notices"] == expected["notices"]
    assert ("target_kind", "y") in codes(shown)


def test_rounded_numbers_are_refused_as_categories(served: Served) -> None:
    data_set = served.upload("id,y\n9007199254740993,p\n9007199254740992,q\n9007199254740995,p\n", target="y")["id"]
    change_id = {"columns": [{"name": "id", "kind": "nominal"}]}
    problem = assert_problem(served.client.patch(f"/v1/datasets/{data_set}", json=change_id), 422, "/columns/0")
    assert [fault["code"] for fault in problem["errors"]] == ["too_large"]
    assert kinds(served.client.get(f"/v1/datasets/{data_set}").get_json())["id"] == "numeric"


@ON_SQLITE
@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        pytest.param({"target": "Snow"}, ["/target"], id="no such target"),
        pytest.param({"target": None, "task": "classification"}, ["/task"], id="a task without a target"),
        pytest.param({"task": "regression"}, ["/task"], id="a task that the target does not fit"),
        pytest.param({"columns": [{"name": "Snow"}]}, ["/columns/0/name"], id="no such column"),
        pytest.param({"columns": [{"name": "Wind"}] * 2}, ["/columns/1/name"], id="a column named twice"),
        pytest.param(
            {"columns": [{"name": "Wind"}] * 3 + [{"name": "Snow"}]},
            ["/columns/3/name", "/columns/1/name", "/columns/2/name"],
            id="a column named thrice and an unknown one",
        ),
        pytest.param({"columns": [{"name": "Wind"}] * 10_000}, ["/columns"], id="more entries than columns"),
        pytest.param({"columns": [1] * 100_001}, ["/columns"], id="more entries than any table has columns"),
        pytest.param({"columns": [{"kind": "nominal"}]}, ["/columns/0/name"], id="a column without a name"),
        pytest.param({"columns": [{"name": "Wind", "kind": "loud"}]}, ["/columns/0/kind"], id="no such kind"),
        pytest.param(
            {"columns": [{"name": "Wind", "role": "target"}]}, ["/columns/0/role"], id="a role said elsewhere"
        ),
        *(
            pytest.param(
                {"columns": [{"name": "PlayTennis", "role": role}]}, ["/columns/0/role"], id=f"the target as {role}"
            )
            for role in ("ignore", "attribute")
        ),
        pytest.param(
            {"target": "Wind", "columns": [{"name": "Outlook"}, {"name": "Wind", "role": "ignore"}]},
            ["/columns/1/role"],
            id="a new target that is ignored",
        ),
        pytest.param({"columns": [{"name": "Wind", "kind": "ordinal", "categories": []}]}, None, id="no categories"),
        pytest.param({"columns": [{"name": "Wind", "kind": "numeric"}]}, None, id="texts that are no numbers"),
        pytest.param(
            {"columns": [{"name": "Outlook"}, {"name": "Wind", "role": "weight"}]}, None, id="texts as weights"
        ),
        pytest.param({"colour": "red"}, ["/colour"], id="an unknown field"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused_and_changes_nothing(
    served: Served, changes: dict[str, Any], pointers: list[str] | None
) -> None:
    before = served.upload(TENNIS, target="PlayTennis")
    response = served.client.patch(f"/v1/datasets/{before['id']}", json=changes)
    if pointers is None:
        assert response.status_code == 422, response.text
        faults = response.get_json()["errors"]
        place = len(changes["columns"]) - 1
        assert {fault["pointer"].split("/")[1:3] == ["columns", str(place)] for fault in faults} == {True}, faults
    else:
        assert_problem(response, 422, *pointers)
    assert served.client.get(f"/v1/datasets/{before['id']}").get_json() == before


@pytest.mark.parametrize(("other", "pointer"), [("u", "/columns/1/role"), ("w", "/columns")])
def test_a_second_weight_is_refused_and_may_replace_the_first(served: Served, other: str, pointer: str) -> None:
    data_set = served.upload("w,v,u,y\n1,2,1,p\n2,1,2,q\n", target="y", weight="v")["id"]
    columns = [{"name": "y"}, {"name": other, "role": "weight"}]
    refused = served.client.patch(f"/v1/datasets/{data_set}", json={"columns": columns})
    [fault] = assert_problem(refused, 422, pointer)["errors"]
    assert fault["message"].endswith("there is another weight column")
    shown = change(served, data_set, columns=[*columns, {"name": "v", "role": "attribute"}])
    assert [column["name"] for column in shown["schema"]["columns"] if column["role"] == "weight"] == [other]


def test_nul_in_what_stands_for_missing_is_no_fault_of_a_column(served: Served) -> None:
    data_set = served.upload("x,y\n1,p\n2,q\n", target="y")["id"]
    refused = served.client.patch(f"/v1/datasets/{data_set}", json={"missing_values": ["\0", "1"]})
    assert assert_problem(refused, 422, "/missing_values")["errors"][0]["message"].startswith("a text must not hold")


def test_a_text_that_is_no_number_in_an_upload_is_none_in_a_declaration(served: Served) -> None:
    data_set = served.upload("a,b\n1_000,u\n2_000,v\n")["id"]
    response = served.client.patch(f"/v1/datasets/{data_set}", json={"columns": [{"name": "a", "kind": "numeric"}]})
    assert response.status_code == 422, response.text


def test_thousands_of_columns_are_declared_in_one_request(served: Served) -> None:
    names = [f"a{place}" for place in range(1_000)]
    data_set = served.upload(",".join(names) + "\n" + ("1," * 1_000)[:-1] + "\n" + ("2," * 1_000)[:-1])["id"]
    shown = change(served, data_set, columns=[{"name": name, "kind": "nominal"} for name in reversed(names)])
    assert kinds(shown) == dict.fromkeys(names, "nominal")


def test_once_a_version_was_trained_on_it_a_data_set_stays_as_it_is(served: Served) -> None:
    data_set = served.train("tennis")
    problem = assert_problem(served.client.patch(f"/v1/datasets/{data_set}", json={"target": "Wind"}), 409)
    assert "trained on" in problem["detail"]


def test_while_a_job_waits_for_it_a_data_set_stays_as_it_is(served: Served) -> None:
    data_set = served.upload(TENNIS, target="PlayTennis")["id"]
    served.post("/v1/training-jobs", {"model": "m", "dataset": data_set})
    assert_problem(served.client.patch(f"/v1/datasets/{data_set}", json={"target": "Wind"}), 409)


@pytest.mark.parametrize(("method", "path"), [("GET", "/profile"), ("PATCH", "")])
def test_an_unknown_data_set_is_not_found(served: Served, method: str, path: str) -> None:
    unknown = "/v1/datasets/01890000-0000-7000-8000-000000000000"
    assert_problem(served.client.open(f"{unknown}{path}", method=method, json={} if method == "PATCH" else None), 404)


# --- notices


def test_a_notice_stays_until_the_texts_that_mean_a_missing_value_are_named(served: Served) -> None:
    lines = [f"{row + 0.25 if row != 3 else '-'},{row % 3 / 7},{'pq'[row % 2]}" for row in range(12)]
    stored = served.upload("\n".join(["x,z,y", *lines, ""]), target="y")
    (notice,) = stored["notices"]
    assert (notice["code"], notice["attribute"]) == ("kind_against_majority", "x")
    assert notice["cells"] == [{"row": 3, "value": "-"}]
    assert "all of its 12 cells but 1 are numbers: '-' in row 3" in notice["message"]

    assert served.client.get(f"/v1/datasets/{stored['id']}").get_json()["notices"] == [notice]
    changed = change(served, stored["id"], columns=[{"name": "z", "role": "ignore"}])
    assert changed["notices"] == [notice]
    changed = change(served, stored["id"], missing_values=["?", "NA", "-"])
    assert (changed["notices"], kinds(changed)["x"]) == ([], "numeric")


def test_a_declared_category_stays_one_when_something_else_is_declared(served: Served) -> None:
    schema = {"columns": [{"name": "land", "kind": "nominal", "categories": ["EU", "NA"]}]}
    table = {"rows": [{"land": "NA", "n": 1.5, "y": "p"}, {"land": "EU", "n": 2.5, "y": "q"}], "schema": schema}
    response = served.client.post("/v1/datasets?target=y", json=table)
    assert response.status_code == 201, response.text
    data_set = response.get_json()["id"]
    change(served, data_set, columns=[{"name": "n", "role": "ignore"}], missing_values=["?", "NA", "-"])
    rows = served.client.get(f"/v1/datasets/{data_set}/rows").get_json()["items"]
    assert [row["land"] for row in rows] == ["NA", "EU"]


def test_a_copy_of_the_target_is_told_until_another_column_is_the_target(served: Served) -> None:
    rows = "".join(f"{row % 7},{'pq'[row % 2]},{'pq'[row % 2]},{'st'[row % 3 > 0]}\n" for row in range(12))
    stored = served.upload(f"x,copy,y,z\n{rows}", target="y")
    assert [(one["code"], one["attribute"]) for one in stored["notices"]] == [("copy_of_target", "copy")]
    assert change(served, stored["id"], columns=[{"name": "x", "kind": "numeric"}])["notices"] == stored["notices"]
    assert change(served, stored["id"], target="z")["notices"] == []
    assert change(served, stored["id"], target="y")["notices"] == stored["notices"]


def test_what_the_stored_cells_have_lost_stays_a_notice(served: Served) -> None:
    data_set = served.upload("k,y\n007,p\n012,q\n7,p\n", target="y")
    assert "leading_zeros" in {notice["code"] for notice in data_set["notices"]}
    changed = change(served, data_set["id"], columns=[{"name": "k", "kind": "nominal"}])
    assert "leading_zeros" in {notice["code"] for notice in changed["notices"]}


def test_cells_that_were_read_as_missing_by_default_stay_a_notice(served: Served) -> None:
    csv = "x,y\n" + "NA,p\nEU,q\nUS,q\n" * 2
    every = {"name": "x", "categories": ["EU", "NA", "US"]}
    for changes in ({"missing_values": ["?"]}, {"columns": [every]}, {"columns": [every], "missing_values": ["?"]}):
        stored = served.upload(csv, target="y")
        assert codes(stored) == {("text_as_missing", "x")}
        changed = change(served, stored["id"], **changes)
        assert [row["x"] for row in rows(served, stored["id"])] == [None, "EU", "US"] * 2
        assert changed["notices"] == stored["notices"]


def test_a_column_that_was_left_out_stays_a_notice(served: Served) -> None:
    content = io.BytesIO()
    table = pandas.DataFrame({"x": [1.5, 2.5, 0.5], "y": ["p", "q", "p"]}, index=pandas.Index([7, 3, 5], name="key"))
    table.to_parquet(content)
    response = served.client.post(
        "/v1/datasets?target=y", data=content.getvalue(), content_type="application/vnd.apache.parquet"
    )
    stored = response.get_json()
    assert codes(stored) == {("index_left_out", "key")}
    assert change(served, stored["id"], columns=[{"name": "x", "role": "ignore"}])["notices"] == stored["notices"]
    assert change(served, stored["id"], target=None)["notices"] == stored["notices"]


def test_the_task_that_a_target_has_already_changes_nothing(served: Served) -> None:
    declared = {"target": "y", "columns": [{"name": "y", "kind": "nominal", "categories": ["yes", "no"]}]}
    table = {"rows": [{"x": 1, "y": "yes"}, {"x": 2, "y": "no"}], "schema": declared}
    shown = served.client.post("/v1/datasets", json=table).get_json()
    changed = change(served, shown["id"], task="classification")
    assert (columns(changed), changed["fingerprint"]) == (columns(shown), shown["fingerprint"])


def test_a_weight_that_now_means_missing_is_refused_at_the_texts_for_missing(served: Served) -> None:
    table = {"rows": [{"x": 1, "w": 0, "y": "a"}, {"x": 2, "w": 2, "y": "b"}]}
    data_set = served.client.post("/v1/datasets?target=y&weight=w", json=table).get_json()["id"]
    refused = served.client.patch(f"/v1/datasets/{data_set}", json={"missing_values": ["0"]})
    assert refused.status_code == 422
    [fault] = refused.get_json()["errors"]
    assert fault["pointer"] == "/missing_values"
    assert fault["message"].startswith("column 'w': ")
