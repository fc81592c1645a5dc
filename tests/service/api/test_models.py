"""Models and versions over HTTP."""

import hashlib
from collections.abc import Iterator

import pytest

import espalier
from service.settings import Settings
from service.usecases import models
from tests.service.served import HOURS, ON_SQLITE, TENNIS, Served, assert_problem, serving


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        one.train("tennis")
        yield one


def test_models_are_listed_newest_first(served: Served) -> None:
    served.train("hours", HOURS, preset="cart", target="hours")
    items = served.client.get("/v1/models").get_json()["items"]
    assert [item["name"] for item in items] == ["hours", "tennis"]


def test_a_model_says_its_newest_version(served: Served) -> None:
    served.train("tennis", preset="c45")
    assert served.client.get("/v1/models/tennis").get_json()["newest_version"] == 2


def test_the_newest_version_of_a_model_is_not_a_deleted_one(served: Served) -> None:
    served.train("tennis", preset="c45")
    before = served.client.get("/v1/models/tennis").headers["ETag"]
    for number, newest in ((2, 1), (1, None)):
        assert served.client.delete(f"/v1/models/tennis/versions/{number}").status_code == 204
        response = served.client.get("/v1/models/tennis")
        assert response.get_json()["newest_version"] == newest
        assert served.client.get("/v1/models").get_json()["items"][0]["newest_version"] == newest
        assert response.headers["ETag"] != before
    changed = served.client.patch("/v1/models/tennis", json={"tags": ["a"]})
    assert changed.get_json()["newest_version"] is None


def test_versions_are_listed_newest_first_page_by_page(served: Served) -> None:
    served.train("tennis", preset="c45")
    first = served.client.get("/v1/models/tennis/versions?limit=1").get_json()
    second = served.client.get(f"/v1/models/tennis/versions?limit=1&cursor={first['next']}").get_json()
    assert [(item["version"], item["preset"]) for item in first["items"] + second["items"]] == [(2, "c45"), (1, "id3")]


def test_a_version_shows_how_it_was_made_and_its_figures(served: Served) -> None:
    shown = served.client.get("/v1/models/tennis/versions/1").get_json()
    assert (shown["model"], shown["version"], shown["parent"], shown["preset"]) == ("tennis", 1, None, "id3")
    assert (shown["summary"]["n_leaves"], shown["summary"]["train_errors"]) == (5, 0)
    assert served.client.get(f"/v1/datasets/{shown['dataset']}").status_code == 200


def test_the_tree_has_three_forms(served: Served) -> None:
    path = "/v1/models/tennis/versions/1/tree"
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    assert served.client.get(path).get_json() == espalier.to_document(model)["tree"]
    text, mermaid = (served.client.get(f"{path}?format={form}") for form in ("text", "mermaid"))
    assert (text.text, mermaid.text) == (espalier.to_text(model), espalier.to_mermaid(model))
    assert text.content_type == mermaid.content_type == "text/plain; charset=utf-8"
    assert_problem(served.client.get(f"{path}?format=ascii"), 422, "/format")


def test_the_rules_of_a_tree_have_three_forms(served: Served) -> None:
    path = "/v1/models/tennis/versions/1/rules"
    shown = served.client.get(path).get_json()
    assert [rule["text"] for rule in shown["rules"]][:1] == ["if Outlook is Overcast then Yes"]
    assert shown["n_rules"] == 5  # one a leaf
    assert "if Outlook is Sunny and Humidity is High then No" in served.client.get(f"{path}?format=text").text
    assert "(Outlook = Rain ∧ Wind = Strong)" in served.client.get(f"{path}?format=logic").text
    assert_problem(served.client.get(f"{path}?format=ascii"), 422, "/format")


def test_what_a_row_of_one_class_must_be_like_has_the_same_three_forms(served: Served) -> None:
    path = "/v1/models/tennis/versions/1/rules?class=Yes"
    ways = [["Outlook is Overcast"], ["Outlook is Sunny", "Humidity is Normal"], ["Outlook is Rain", "Wind is Weak"]]
    sentences = sorted(f"if {' and '.join(way)} then Yes" for way in ways)
    shown = served.client.get(path).get_json()
    assert shown["class"] == "Yes"
    assert sorted(sorted(each["text"] for each in way) for way in shown["any_of"]) == sorted(map(sorted, ways))
    assert sorted(served.client.get(f"{path}&format=text").text.splitlines()) == sentences
    assert served.client.get(f"{path}&format=logic").text.startswith("Yes ⇔ (")


def test_a_class_that_the_model_does_not_know_has_no_rules(served: Served) -> None:
    problem = assert_problem(served.client.get("/v1/models/tennis/versions/1/rules?class=Perhaps"), 422, "/class")
    assert "No, Yes" in problem["detail"]


@ON_SQLITE
@pytest.mark.parametrize("query", ["", "?format=text", "?format=logic", "?class=Yes", "?format=logic&class=Yes"])
def test_more_rules_than_are_shown_are_refused_before_they_are_made(
    served: Served, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    served.keep("rules", espalier.extract_rules(model))
    monkeypatch.setattr(models, "MAX_RULES", 4)
    for name, has in (("tennis", "5 leaves with one rule each"), ("rules", "5 rules")):
        problem = assert_problem(served.client.get(f"/v1/models/{name}/versions/1/rules{query}"), 422)
        assert problem["detail"] == f"this version has {has}; at most 4 are returned: prune it, or get its document"
    monkeypatch.setattr(models, "MAX_RULES", 5)
    assert served.client.get(f"/v1/models/tennis/versions/1/rules{query}").status_code == 200


@ON_SQLITE
@pytest.mark.parametrize("query", ["", "?format=text", "?format=logic", "?class=Yes", "?format=logic&class=Yes"])
def test_rules_that_list_more_categories_than_are_shown_are_refused(
    served: Served, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Outlook has three categories, Humidity and Wind two each: the three tests of the tree of play-tennis.
    monkeypatch.setattr(models, "MAX_LISTED_CATEGORIES", 6)
    problem = assert_problem(served.client.get(f"/v1/models/tennis/versions/1/rules{query}"), 422)
    detail = (
        "the tests of this version list 7 categories; rules with at most 6 are returned: prune the version, or get its "
        "document"
    )
    assert problem["detail"] == detail
    monkeypatch.setattr(models, "MAX_LISTED_CATEGORIES", 7)
    assert served.client.get(f"/v1/models/tennis/versions/1/rules{query}").status_code == 200


@ON_SQLITE
@pytest.mark.parametrize(
    ("resource", "n_listed"),
    # One rule tests Outlook; four rules test Outlook and either Humidity or Wind. Each condition lists one category.
    [("rules", 1 + 4 * 2), ("export", 3 + 4 * (3 + 2)), ("export?format=sql-sqlite", 3 + 4 * (3 + 2))],
)
def test_a_list_of_rules_that_lists_more_categories_than_are_shown_is_refused(
    served: Served, resource: str, n_listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export lists all three categories of Outlook, and both of Humidity and of Wind, in each condition."""
    served.keep(
        "rules", espalier.extract_rules(espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3"))
    )
    monkeypatch.setattr(models, "MAX_LISTED_CATEGORIES", n_listed - 1)
    problem = assert_problem(served.client.get(f"/v1/models/rules/versions/1/{resource}"), 422)
    assert f"list {n_listed} categories; rules with at most {n_listed - 1} are" in problem["detail"]
    monkeypatch.setattr(models, "MAX_LISTED_CATEGORIES", n_listed)
    assert served.client.get(f"/v1/models/rules/versions/1/{resource}").status_code == 200


@ON_SQLITE
@pytest.mark.parametrize("number", ["01", "0", "+1", "%31%20", "1.0", "00000000000000000001"])
@pytest.mark.parametrize("api", ["v1", "v2"])
def test_a_version_has_one_spelling(served: Served, api: str, number: str) -> None:
    assert served.client.get(f"/{api}/models/tennis/versions/1").status_code == 200
    response = served.client.get(f"/{api}/models/tennis/versions/{number}")
    assert response.status_code == 404


def test_importances_are_those_of_the_core_the_most_telling_first(served: Served) -> None:
    found = served.client.get("/v1/models/tennis/versions/1/importances").get_json()["attributes"]
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    assert {each["attribute"]: each["importance"] for each in found} == dict(espalier.attribute_importances(model))
    # Quinlan's tree (1986): wind parts the rainy days, humidity the sunny ones, and nobody asks how warm it is.
    assert [each["attribute"] for each in found] == ["Humidity", "Wind", "Outlook", "Temperature"]


def test_a_list_of_rules_is_a_version_like_any_other_but_has_no_tree(served: Served) -> None:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    served.keep("rules", espalier.extract_rules(model))
    row = {"Outlook": "Sunny", "Humidity": "High"}
    for explain in ("none", "path", "full"):
        answer = served.predict("rules", {"rows": [row], "explain": explain})["predictions"][0]
        assert answer["label"] == "No"
        explained = served.client.get(f"/v1/decisions/{answer['decision_id']}/explanation").get_json()
        assert explained["verified"] is True
        assert explained["explanation"]["rule"] == "if Outlook is Sunny and Humidity is High then No"
    path = "/v1/models/rules/versions/1"
    for form in ("json", "text", "mermaid"):
        assert "list of rules" in assert_problem(served.client.get(f"{path}/tree?format={form}"), 422)["detail"]
    assert "list of rules" in assert_problem(served.client.get(f"{path}/importances"), 422)["detail"]
    assert served.client.get(f"{path}/rules").get_json()["n_rules"] == 5
    assert served.client.get(f"{path}/document").get_json()["kind"] == "rules"


def test_the_document_is_the_model_byte_for_byte(served: Served) -> None:
    response = served.client.get("/v1/models/tennis/versions/1/document")
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    assert response.content_type == "application/json"
    assert response.data == espalier.to_json(model)


def test_a_version_that_was_not_pruned_has_no_trace(served: Served) -> None:
    problem = assert_problem(served.client.get("/v1/models/tennis/versions/1/pruning"), 404)
    assert "a training that ends with pruning" in problem["detail"]


@pytest.mark.parametrize("path", ["", "/tree", "/rules", "/importances", "/document", "/pruning"])
@pytest.mark.parametrize("number", ["2", "0", "-1", "x", "99999999999999999999"])
def test_an_unknown_version_is_not_found(served: Served, number: str, path: str) -> None:
    assert_problem(served.client.get(f"/v1/models/tennis/versions/{number}{path}"), 404)


@pytest.mark.parametrize("name", ["nothing", "a%00b", "a%2Fb", "-a", "x" * 65])
def test_an_unknown_or_impossible_model_is_not_found(served: Served, name: str) -> None:
    assert_problem(served.client.get(f"/v1/models/{name}"), 404)
    assert_problem(served.client.get(f"/v1/models/{name}/versions"), 404)


def test_a_version_is_exported_as_a_file_that_predicts(served: Served) -> None:
    response = served.client.get("/v1/models/tennis/versions/1/export?format=python")
    assert response.mimetype == "text/x-python"
    names: dict = {}
    exec(compile(response.get_data(as_text=True), "tennis.py", "exec"), names)  # noqa: S102 - runs what is exported
    row = {"Outlook": "Overcast"}
    predicted = served.client.post("/v1/models/tennis/predict", json={"rows": [row]}).get_json()["predictions"][0]
    assert names["predict"](row)["label"] == predicted["label"]


def test_an_export_is_an_attachment_of_the_media_type_of_its_format(served: Served) -> None:
    for form, media_type, file in (
        ("pmml", "application/xml", "tennis-1.pmml"),
        ("c", "text/x-c", "tennis-1.c"),
        ("jdm", "application/vnd.gorules.decision", "tennis-1.json"),
        ("dmn", "application/xml", "tennis-1.dmn"),
        ("sql-sqlite", "application/sql", "tennis-1.sql"),
    ):
        response = served.client.get(f"/v1/models/tennis/versions/1/export?format={form}")
        assert (response.status_code, response.mimetype) == (200, media_type)
        assert response.headers["Content-Disposition"] == f"attachment; filename={file}"


def test_a_binary_export_is_an_attachment(served: Served) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    response = served.client.get("/v1/models/tennis/versions/1/export?format=onnx")
    assert (response.status_code, response.mimetype) == (200, "application/octet-stream")
    assert response.headers["Content-Disposition"] == "attachment; filename=tennis-1.onnx"
    document = served.client.get("/v1/models/tennis/versions/1/document").data
    assert hashlib.sha256(document).hexdigest().encode() in response.data


def test_the_formats_of_a_version_are_listed_with_what_prevents_one(served: Served) -> None:
    served.train("tennis", preset="c45")
    address = "/v1/models/tennis/versions/2/export"
    obstacles = {each["format"]: each["obstacle"] for each in served.client.get(address).get_json()["formats"]}
    assert set(obstacles) == set(espalier.EXPORTS)
    assert obstacles["python"] is None
    assert "missing='majority'" in obstacles["sql-sqlite"]
    assert_problem(served.client.get(f"{address}?format=sql-sqlite"), 422)
    assert served.client.get(f"{address}?format=sql-sqlite&missing=majority").status_code == 200
    assert_problem(served.client.get(f"{address}?format=fortran"), 422, "/format")
