"""Predictions over HTTP: the answer, its path, and its decision in the log before anything is said."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

import espalier
from service.database.engine import read_session
from service.errors import Unavailable
from service.repositories import decision_log, decisions
from service.settings import Settings
from tests.service.served import HOURS, TENNIS, Served, assert_problem, serving

SUNNY = {"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings, max_predict_rows=5) as one:
        one.train("tennis")
        yield one


def test_one_row_is_answered_with_its_path(served: Served) -> None:
    answer = served.predict("tennis", {"rows": [SUNNY]})
    prediction = answer["predictions"][0]
    assert (answer["model"], answer["version"], prediction["label"]) == ("tennis", 1, "No")
    assert prediction["distribution"] == {"No": 1.0, "Yes": 0.0}
    asked = [(step["attribute"], step["test"], step["set"], step["value"]) for step in prediction["path"]]
    assert asked == [("Outlook", "in", ["Sunny"], "Sunny"), ("Humidity", "in", ["High"], "High")]
    assert [step["weight"] for step in prediction["path"]] == [14.0, 5.0]
    assert prediction["rule"] == "if Outlook is Sunny and Humidity is High then No"
    assert [condition["attribute"] for condition in prediction["conditions"]] == ["Outlook", "Humidity"]
    assert (prediction["support"], prediction["flags"]) == (3.0, {"missing": [], "unseen": []})


def test_a_log_that_is_far_behind_answers_429_and_when_to_come_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(decision_log, "MAX_WAITING", 0)
        refused = served.post("/v1/models/tennis/predict", {"rows": [SUNNY]})
    assert_problem(refused, 429)
    assert int(refused.headers["Retry-After"]) >= 1
    given = served.predict("tennis", {"rows": [SUNNY]})["predictions"][0]["decision_id"]
    assert [one["id"] for one in served.client.get("/v1/decisions").get_json()["items"]] == [given]


def test_explain_none_leaves_the_path_out_and_full_adds_contributions(served: Served) -> None:
    plain, full = (
        served.predict("tennis", {"rows": [SUNNY], "explain": explain})["predictions"][0]
        for explain in ("none", "full")
    )
    assert not {"path", "conditions", "rule"} & plain.keys()
    assert full["contributions"].keys() >= {"Outlook", "Humidity"}


def test_a_regression_is_answered_with_a_value(served: Served) -> None:
    served.train("hours", HOURS, preset="cart", target="hours")
    prediction = served.predict("hours", {"rows": [{"size": 1}], "explain": "none"})["predictions"][0]
    assert prediction["value"] == 10.0
    assert not {"label", "distribution"} & prediction.keys()


def test_columns_are_answered_as_the_same_rows_are(served: Served) -> None:
    rows = [SUNNY, SUNNY | {"Outlook": "Overcast"}]
    by_rows = served.predict("tennis", {"rows": rows})["predictions"]
    by_columns = served.predict("tennis", {"columns": {name: [row[name] for row in rows] for name in SUNNY}})[
        "predictions"
    ]
    assert [one.pop("decision_id") for one in by_rows] != [one.pop("decision_id") for one in by_columns]
    assert by_rows == by_columns


def test_the_newest_version_answers_unless_one_is_named(served: Served) -> None:
    served.train("tennis", preset="c45")
    assert served.predict("tennis", {"rows": [SUNNY]})["version"] == 2
    response = served.post("/v1/models/tennis/versions/1/predict", {"rows": [SUNNY]})
    assert response.get_json()["version"] == 1


def test_every_answer_is_in_the_log_when_it_is_given(served: Served) -> None:
    answer = served.predict("tennis", {"rows": [SUNNY, {}], "subject": "Ada"})
    for prediction, row in zip(answer["predictions"], (SUNNY, {}), strict=True):
        with read_session(served.service.sessions) as session:
            logged = decisions.find(session, prediction["decision_id"])
        assert (logged.input, logged.subject, logged.leaf) == (row, "Ada", prediction["leaf"])
        assert logged.answer["label"] == prediction["label"]


def test_a_log_that_is_far_behind_says_when_to_come_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_log, "MAX_WAITING", 0)
    refused = served.post("/v1/models/tennis/predict", {"rows": [SUNNY]})
    assert "waiting to be logged" in assert_problem(refused, 429)["detail"]
    assert refused.headers["Retry-After"] == "1"


def test_no_answer_is_given_when_the_log_cannot_be_written(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(decision_log, "insert_records", full)
    problem = assert_problem(served.post("/v1/models/tennis/predict", {"rows": [SUNNY]}), 503)
    assert problem["retryable"] is True


def test_missing_and_unseen_values_are_flagged(served: Served) -> None:
    prediction = served.predict("tennis", {"rows": [{"Outlook": "Fog", "Wind": None}]})["predictions"][0]
    assert prediction["flags"] == {"missing": ["Temperature", "Humidity", "Wind"], "unseen": ["Outlook"]}
    assert prediction["path"][0]["reason"] == "unseen"


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        pytest.param([], [""], id="a list"),
        pytest.param({}, [""], id="no rows"),
        pytest.param({"rows": [{}], "columns": {}}, [""], id="rows and columns"),
        pytest.param({"rows": []}, ["/rows"], id="an empty list"),
        pytest.param({"rows": {}}, ["/rows"], id="rows that are an object"),
        pytest.param({"rows": [1, "x"]}, ["/rows/0", "/rows/1"], id="rows that are no objects"),
        pytest.param({"rows": [{"Colour": "red"}]}, ["/rows/0/Colour"], id="an unknown attribute"),
        pytest.param({"rows": [{"a/b~c": 1}]}, ["/rows/0/a~1b~0c"], id="an unknown attribute with signs of its own"),
        pytest.param({"rows": [{}, {"Wind": 5}]}, ["/rows/1/Wind"], id="a number for a category"),
        pytest.param({"columns": {"Wind": ["Weak", 5]}}, ["/columns/Wind/1"], id="a number in a column"),
        pytest.param({"columns": {"Wind": ["Weak"], "Outlook": []}}, ["/columns"], id="columns of different lengths"),
        pytest.param({"columns": {}}, ["/columns"], id="no columns"),
        pytest.param({"columns": []}, ["/columns"], id="columns that are a list"),
        pytest.param({"rows": [{}], "explain": "all"}, ["/explain"], id="an unknown explain"),
        pytest.param({"rows": [{}], "a/b~c": 1}, ["/a~1b~0c"], id="an unknown field with a slash and a tilde"),
        pytest.param({"rows": [{}], "explain": {"a": []}}, ["/explain"], id="an explain that is an object"),
        pytest.param({"rows": [{}], "subject": 5}, ["/subject"], id="a subject that is a number"),
        pytest.param({"rows": [{}], "subject": "x" * 201}, ["/subject"], id="a long subject"),
        pytest.param({"rows": [{}], "subject": "a\0b"}, ["/subject"], id="NUL in the subject"),
        pytest.param({"rows": [{}], "missing": "none"}, ["/missing"], id="an unknown strategy"),
        pytest.param({"rows": [{}], "missing": "surrogate"}, ["/missing"], id="a strategy that was never learned"),
        pytest.param({"rows": [{}], "on_error": "ignore"}, ["/on_error"], id="an unknown way with errors"),
        pytest.param(
            {"rows": [{}], "missing": [], "on_error": {}}, ["/missing", "/on_error"], id="words that are none"
        ),
        pytest.param({"rows": [{}], "explian": "path"}, ["/explian"], id="a misspelt field"),
        pytest.param({"rows": [], "explain": 1, "x": 1}, ["/x", "/explain", "/rows"], id="several faults"),
    ],
)
def test_a_bad_request_is_refused_with_its_place(served: Served, body: object, pointers: list[str]) -> None:
    assert_problem(served.post("/v1/models/tennis/predict", body), 422, *pointers)


# Sizes and colours of things that cost 1 or 2; what is wrong with each row, and the place and code of the fault.
THINGS = "size,colour,price\n1,red,cheap\n2,red,cheap\n8,red,dear\n9,blue,dear\n"
BAD_ROWS: list[tuple[object, list[tuple[str, str]]]] = [
    ({"size": "8"}, [("/size", "wrong_type")]),
    ({"size": True, "colour": 3}, [("/size", "wrong_type"), ("/colour", "wrong_type")]),
    ({"size": 8, "weight": 1}, [("/weight", "unknown_attribute")]),
    ({"size": [8]}, [("/size", "wrong_type")]),
    ([8, "red"], [("", "wrong_type")]),
    (None, [("", "wrong_type")]),
]
GOOD_ROWS: list[tuple[dict[str, object], str, list[str], list[str]]] = [
    ({"size": 8}, "dear", ["colour"], []),
    ({"size": 1e300, "colour": "red"}, "dear", [], []),
    ({"size": -1e300, "colour": "green"}, "cheap", [], ["colour"]),
    ({"size": "?", "colour": "NA"}, "cheap", ["size", "colour"], []),
]


def test_bad_rows_are_skipped_with_their_errors_and_the_others_answered(served: Served) -> None:
    served.train("things", THINGS, preset="cart", target="price")
    rows = [BAD_ROWS[0][0], GOOD_ROWS[0][0], BAD_ROWS[4][0], GOOD_ROWS[1][0]]
    answers = served.predict("things", {"rows": rows, "on_error": "skip", "explain": "none"})["predictions"]
    assert [answer.get("label") for answer in answers] == [None, "dear", None, "dear"]
    assert [answer.keys() for answer in answers[::2]] == [{"decision_id", "errors"}] * 2
    assert [[fault["pointer"] for fault in answer["errors"]] for answer in answers[::2]] == [
        ["/rows/0/size"],
        ["/rows/2"],
    ]
    by_column = {"columns": {"size": [1, "x", 9], "colour": ["red"] * 3}, "on_error": "skip"}
    answers = served.predict("things", by_column)["predictions"]
    assert [answer.get("label") for answer in answers] == ["cheap", None, "dear"]
    assert [fault["pointer"] for fault in answers[1]["errors"]] == ["/columns/size/1"]


@pytest.mark.parametrize("explain", ["none", "path", "full"])
def test_each_kind_of_bad_row_says_where_and_what_and_each_odd_one_is_answered(served: Served, explain: str) -> None:
    served.train("things", THINGS, preset="cart", target="price")
    for row, faults in BAD_ROWS:
        path = "/v1/models/things/predict"
        refused = served.post(path, {"rows": [row], "explain": explain})
        assert_problem(refused, 422, *(f"/rows/0{place}" for place, _ in faults))
        [answer] = served.predict("things", {"rows": [row], "explain": explain, "on_error": "skip"})["predictions"]
        found = [(fault["pointer"], fault["code"]) for fault in answer["errors"]]
        assert found == [(f"/rows/0{place}", code) for place, code in faults]
    for row, label, absent, unseen in GOOD_ROWS:
        [answer] = served.predict("things", {"rows": [row], "explain": explain})["predictions"]
        assert (answer["label"], answer["flags"]) == (label, {"missing": absent, "unseen": unseen})


def test_a_row_that_was_refused_is_in_the_log_without_an_answer(served: Served) -> None:
    served.train("things", THINGS, preset="cart", target="price")
    rows = [{"size": [1], "colour": "red"}, GOOD_ROWS[0][0], [1]]
    answers = served.predict("things", {"rows": rows, "on_error": "skip"})["predictions"]
    shown = [served.client.get(f"/v1/decisions/{answer['decision_id']}").get_json() for answer in answers]
    assert [one["input"] for one in shown] == [{"colour": "red"}, {"size": 8}, {}]
    assert [one["leaf"] is None for one in shown] == [True, False, True]
    assert [one["answer"].get("errors") for one in shown] == [answer.get("errors") for answer in answers]
    path = f"/v1/decisions/{answers[0]['decision_id']}/explanation"
    assert "refused" in assert_problem(served.client.get(path), 409)["detail"]
    assert len(served.client.get("/v1/decisions?label=dear").get_json()["items"]) == 1


def test_the_errors_of_a_row_with_thousands_of_faults_are_few_and_the_last_says_how_many_are_hidden(
    served: Served,
) -> None:
    row = {f"x{place}": 1 for place in range(3000)}
    [answer] = served.predict("tennis", {"rows": [row], "on_error": "skip"})["predictions"]
    assert len(answer["errors"]) == 20 + 1
    assert answer["errors"][-1] == {"pointer": "", "code": "more_errors", "message": "and 2980 more"}
    logged = served.client.get(f"/v1/decisions/{answer['decision_id']}").get_json()
    assert logged["answer"]["errors"] == answer["errors"]


def test_missing_values_are_taken_as_the_request_asks_and_the_decision_says_so(served: Served) -> None:
    # Five of fourteen days are sunny, four overcast and always Yes, five rainy; nine of fourteen say Yes.
    answers = {
        missing: served.predict("tennis", {"rows": [{}], "missing": missing})["predictions"][0]
        for missing in ("last_prediction", "fractional", "majority")
    }
    assert answers["last_prediction"]["distribution"] == pytest.approx({"No": 5 / 14, "Yes": 9 / 14})
    assert (answers["last_prediction"]["leaf"], answers["last_prediction"]["path"]) == (0, [])
    assert answers["fractional"]["distribution"] == pytest.approx({"No": 5 / 14, "Yes": 9 / 14})
    assert len(answers["fractional"]["paths"]) == 5
    assert answers["majority"]["path"][0]["set"] == ["Rain"]  # as many days as Sunny, and before it in the alphabet
    for missing, answer in answers.items():
        path = f"/v1/decisions/{answer['decision_id']}"
        assert served.client.get(path).get_json()["missing"] == missing
        explained = served.client.get(f"{path}/explanation").get_json()
        assert (explained["verified"], explained["explanation"]["rule"]) == (True, answer["rule"])


def test_more_rows_than_allowed_are_too_large(served: Served) -> None:
    assert "at most 5" in assert_problem(served.post("/v1/models/tennis/predict", {"rows": [{}] * 6}), 413)["detail"]


def test_an_unknown_model_or_version_is_not_found(served: Served) -> None:
    assert_problem(served.post("/v1/models/nothing/predict", {"rows": [{}]}), 404)
    assert_problem(served.post("/v1/models/tennis/versions/9/predict", {"rows": [{}]}), 404)


def test_a_refused_request_is_in_the_log_as_failed(served: Served) -> None:
    served.post("/v1/models/tennis/predict", {"rows": [{"Colour": "red"}]})
    [one] = served.client.get("/v1/decisions").get_json()["items"]
    assert (one["input"], one["leaf"], one["answer"]["errors"][0]["code"]) == ({}, None, "unknown_attribute")


def test_the_service_answers_exactly_as_the_core_does(served: Served) -> None:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    expected = espalier.explain(model, [SUNNY])[0].to_dict()
    prediction = served.predict("tennis", {"rows": [SUNNY]})["predictions"][0]
    prediction.pop("decision_id")
    assert prediction == expected


def test_the_web_application_loads_no_pyarrow_for_single_predictions() -> None:
    needless = "{'numpy.ma', 'numpy.random', 'pyarrow'}"
    # As service.wsgi does, the whole core before the first request.
    script = f"import sys, espalier, service.app; espalier.load_all(); print({needless} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
