"""Predictions that stream: CSV and lines of JSON in, the same out, every line in the log before it is sent."""

import csv
import gzip
import io
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from werkzeug.test import TestResponse

import espalier
from service.database.engine import read_session
from service.errors import Unavailable
from service.repositories import decision_log, decisions
from service.settings import Settings
from service.usecases import prediction_streams
from tests.service.served import HOURS, ON_SQLITE, Served, assert_problem, serving

CSV = "text/csv"
NDJSON = "application/x-ndjson"
QUESTIONS = [
    {"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"},
    {"Outlook": "Overcast", "Humidity": "Normal"},
    {"Outlook": "Fog", "Wind": "Weak"},
    {},
]
NAMES = ["Wind", "Outlook", "Humidity", "Temperature"]


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        one.train("tennis")
        yield one


def asked(served: Served, body: bytes | str, kind: str = CSV, model: str = "tennis", **query: str) -> TestResponse:
    headers = {"Content-Encoding": "gzip"} if isinstance(body, bytes) and body[:2] == b"\x1f\x8b" else {}
    path = f"/v1/models/{model}/predict"
    return served.client.post(path, query_string=query, data=body, content_type=kind, headers=headers)


def as_csv(rows: list[dict[str, Any]], names: list[str] = NAMES) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def csv_rows(response: TestResponse) -> list[dict[str, str]]:
    assert response.status_code == 200, response.text
    assert response.content_type == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(response.text)))


def json_rows(response: TestResponse) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    assert response.content_type == NDJSON
    return [json.loads(line) for line in response.text.splitlines()]


def decided(served: Served, decision_id: str) -> dict[str, Any]:
    shown = served.client.get(f"/v1/decisions/{decision_id}")
    assert shown.status_code == 200, shown.text
    return shown.get_json()


def without_ids(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in one.items() if name not in ("decision_id", "row")} for one in answers]


@ON_SQLITE
@pytest.mark.parametrize("missing", [None, "last_prediction", "fractional"])
@pytest.mark.parametrize("explain", ["none", "path", "full"])
def test_lines_of_json_are_answered_as_the_rows_of_a_json_body_are(
    served: Served, explain: str, missing: str | None
) -> None:
    whole = served.predict("tennis", {"rows": QUESTIONS, "explain": explain, "missing": missing})["predictions"]
    query = {"explain": explain} | ({} if missing is None else {"missing": missing})
    answers = json_rows(asked(served, as_lines(QUESTIONS), NDJSON, **query))
    assert [one["row"] for one in answers] == [0, 1, 2, 3]
    assert without_ids(answers) == without_ids(whole)


@ON_SQLITE
@pytest.mark.parametrize("missing", [None, "last_prediction", "fractional"])
@pytest.mark.parametrize("explain", ["none", "path"])
def test_csv_is_answered_as_the_rows_of_a_json_body_are(served: Served, explain: str, missing: str | None) -> None:
    whole = served.predict("tennis", {"rows": QUESTIONS, "explain": explain, "missing": missing})["predictions"]
    query = {"explain": explain} | ({} if missing is None else {"missing": missing})
    answers = csv_rows(asked(served, as_csv(QUESTIONS), **query))
    for place, (line, one) in enumerate(zip(answers, whole, strict=True)):
        assert line["row"] == str(place)
        assert (line["label"], int(line["leaf"])) == (one["label"], one["leaf"])
        assert float(line["probability"]) == one["distribution"][one["label"]]
        assert (float(line["confidence"]), float(line["support"])) == (one["confidence"], one["support"])
        assert line["missing"] == "; ".join(one["flags"]["missing"])
        assert line["unseen"] == "; ".join(one["flags"]["unseen"])
        assert line.get("rule") == one.get("rule")
        assert line["error"] == ""


@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_every_line_is_a_decision_that_explains_itself(served: Served, kind: str) -> None:
    body = as_csv(QUESTIONS) if kind == CSV else as_lines(QUESTIONS)
    response = asked(served, body, kind, missing="fractional", subject="Ada")
    answers = csv_rows(response) if kind == CSV else json_rows(response)
    assert response.headers["Espalier-Version"] == "1"
    for line, row in zip(answers, QUESTIONS, strict=True):
        shown = decided(served, line["decision_id"])
        assert {name: cell for name, cell in shown["input"].items() if cell is not None} == row
        assert (shown["missing"], shown["subject"], shown["model"]) == ("fractional", "Ada", "tennis")
        assert shown["answer"]["label"] == line["label"]
        explained = served.client.get(f"/v1/decisions/{line['decision_id']}/explanation").get_json()
        assert (explained["verified"], explained["explanation"]["rule"]) == (True, line["rule"])
    assert len({line["decision_id"] for line in answers}) == len(QUESTIONS)


def test_decisions_of_streams_are_listed_and_found_by_label_leaf_and_subject(served: Served) -> None:
    answers = csv_rows(asked(served, as_csv(QUESTIONS), subject="Ada"))
    json_rows(asked(served, as_lines(QUESTIONS), NDJSON))
    for query, wanted in (
        ("label=No", [line["decision_id"] for line in answers if line["label"] == "No"]),
        (f"leaf={answers[1]['leaf']}", [line["decision_id"] for line in answers if line["leaf"] == answers[1]["leaf"]]),
        ("", [line["decision_id"] for line in answers]),
    ):
        found = served.client.get(f"/v1/decisions?subject=Ada&{query}").get_json()["items"]
        assert [one["id"] for one in found] == wanted
    assert len(served.client.get("/v1/decisions").get_json()["items"]) == 2 * len(QUESTIONS)


def test_the_decision_of_a_stream_of_one_row_is_found_by_label_and_leaf(served: Served) -> None:
    [line] = csv_rows(asked(served, "Wind\nWeak\n"))
    for query in ({"label": line["label"]}, {"leaf": line["leaf"]}):
        items = served.client.get("/v1/decisions", query_string=query).get_json()["items"]
        assert [item["id"] for item in items] == [line["decision_id"]]


def test_a_regression_is_answered_in_csv_by_value_and_deviation(served: Served) -> None:
    served.train("hours", HOURS, preset="cart", target="hours", task="regression")
    whole = served.predict("hours", {"rows": [{"size": 1}, {"size": 11}]})["predictions"]
    answers = csv_rows(asked(served, "size\n1\n11\n", model="hours"))
    assert [(float(one["value"]), float(one["std"])) for one in answers] == [
        (one["value"], one["std"]) for one in whole
    ]
    assert "label" not in answers[0]
    lines = json_rows(asked(served, as_lines([{"size": 1}, {"size": 11}]), NDJSON, model="hours"))
    assert without_ids(lines) == without_ids(whole)


@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_rows_that_cannot_be_read_are_skipped_in_their_place(served: Served, kind: str) -> None:
    served.train("hours", HOURS, preset="cart", target="hours", task="regression")
    body = "size\n1\nx\n\n11\n1e400\n" if kind == CSV else '{"size":1}\n{"size":"x"}\n\n{"size":11}\n{"size":1e400}\n'
    response = asked(served, body, kind, model="hours", on_error="skip", explain="none")
    if kind == CSV:
        answers = csv_rows(response)
        assert [one["error"].split(":")[0] for one in answers] == ["", "/rows/1/size", "", "/rows/3/size"]
    else:
        lines = json_rows(response)
        places = [[fault["pointer"] for fault in line.get("errors", [])] for line in lines]
        # Beyond all numbers is no JSON number: the line is no row.
        assert places == [[], ["/rows/1/size"], [], ["/rows/3"]]
        answers = [{name: str(value) for name, value in line.items()} for line in lines]
    assert [one.get("value", "")[:2] for one in answers] == ["10", "", "31", ""]
    assert decided(served, answers[1]["decision_id"])["answer"]["errors"][0]["pointer"] == "/rows/1/size"


def test_a_line_with_nul_characters_is_refused_or_skipped_in_its_place(served: Served) -> None:
    body = as_lines([{"Outlook": "Rain"}, {"Outlook": "Su\0nny"}, {"Outlook": "Rain"}])
    assert_problem(asked(served, body, NDJSON), 422, "/rows/1/Outlook")
    lines = json_rows(asked(served, body, NDJSON, on_error="skip"))
    assert [[fault["pointer"] for fault in line.get("errors", [])] for line in lines] == [[], ["/rows/1/Outlook"], []]
    assert decided(served, lines[1]["decision_id"])["input"] == {"Outlook": "Su\0nny"}


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("cell", ["Su\0nny", '"Su\0nny"', '"a ""quote"" and \0"'])
def test_csv_with_nul_characters_is_no_csv_from_that_line_on(served: Served, cell: str, on_error: str) -> None:
    body = f"Outlook,Wind\nRain,Weak\nRain,Weak\n{cell},Weak\nRain,Weak\n"
    problem = assert_problem(asked(served, body, CSV, on_error=on_error), 422, "")
    assert problem["detail"] == "not CSV: line 4 has NUL characters"


@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_what_is_wrong_with_the_first_batch_is_a_problem_as_ever(served: Served, kind: str) -> None:
    body = "Wind,Colour\nWeak,red\n" if kind == CSV else '{"Wind":"Weak","Colour":"red"}\n'
    assert_problem(asked(served, body, kind), 422, "/Colour" if kind == CSV else "/rows/0/Colour")
    failed = [one["answer"]["errors"][0]["code"] for one in served.client.get("/v1/decisions").get_json()["items"]]
    assert failed == ([] if kind == CSV else ["unknown_attribute"])  # a CSV header that is wrong has no rows yet


@ON_SQLITE
@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("", CSV, 422),
        ("Wind\n", CSV, 422),
        ("Wind,Outlook\nWeak\n", CSV, 422),
        (b"Wind\n\xff\n", CSV, 422),
        ('Wind\n"Weak\n', CSV, 422),
        ("", NDJSON, 422),
        ("\n\n", NDJSON, 422),
        ("[1]\n", NDJSON, 422),
        ("{", NDJSON, 422),
        ("[" * 100_000, NDJSON, 422),
        (b"\xff\xfe\n", NDJSON, 422),
        (gzip.compress(b"Wind\nWeak\n", mtime=0)[:-6], CSV, 400),
        (b"\x1f\x8bnothing", CSV, 400),
        ("Wind\nWeak\n", "text/plain", 415),
    ],
)
def test_a_body_that_is_no_stream_of_rows_is_refused(served: Served, body: bytes | str, kind: str, status: int) -> None:
    response = asked(served, body, kind)
    assert response.status_code == status, response.text
    assert response.content_type == "application/problem+json"


@ON_SQLITE
@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"explain": "all"}, "/explain"),
        ({"explain": "full"}, "/explain"),
        ({"missing": "none"}, "/missing"),
        ({"missing": "surrogate"}, "/missing"),
        ({"on_error": "ignore"}, "/on_error"),
        ({"subject": ""}, "/subject"),
        ({"subject": "x" * 201}, "/subject"),
        ({"limit": "3"}, "/limit"),
        ({"alias": "?"}, "/alias"),
    ],
)
def test_what_is_asked_in_the_query_is_checked(served: Served, query: dict[str, str], pointer: str) -> None:
    assert_problem(asked(served, "Wind\nWeak\n", **query), 422, pointer)


def test_null_is_not_named_where_it_is_not_legal(served: Served) -> None:
    problem = assert_problem(asked(served, "Wind\nWeak\n", missing="null"), 422, "/missing")
    assert problem["errors"][0]["message"].startswith("must be one of ")
    assert "null" not in problem["errors"][0]["message"]


@pytest.mark.parametrize("line", ['{"Wind":NaN}', '{"Wind":"Weak"', b'\xef\xbb\xbf{"Wind":"Weak"}', b'{"Wind":"\xff"}'])
def test_a_line_that_is_not_json_is_called_so(served: Served, line: bytes | str) -> None:
    body = b'{"Wind":"Weak"}\n' + (line if isinstance(line, bytes) else line.encode()) + b"\n[1]\n"
    codes = [
        (error["pointer"], error["code"], error["message"])
        for error in assert_problem(asked(served, body, NDJSON), 422, "/rows/1", "/rows/2")["errors"]
    ]
    assert codes[0] == ("/rows/1", "not_json", "the line is not JSON in UTF-8")
    assert codes[1][1] == "wrong_type"


def test_a_byte_order_mark_before_the_first_line_is_skipped(served: Served) -> None:
    answers = asked(served, b"\xef\xbb\xbf" + as_lines(QUESTIONS).encode(), NDJSON)
    assert answers.status_code == 200, answers.text
    assert answers.text.count("\n") == len(QUESTIONS)


def test_all_types_of_bodies_are_named(served: Served) -> None:
    problem = assert_problem(asked(served, "Wind\nWeak\n", "text/plain"), 415)
    assert all(kind in problem["detail"] for kind in ("application/json", CSV, NDJSON))


def test_of_a_json_body_nothing_is_asked_in_the_query(served: Served) -> None:
    response = served.client.post("/v1/models/tennis/predict?explain=none&subject=x", json={"rows": [{}]})
    assert_problem(response, 422, "/explain", "/subject")


@ON_SQLITE
@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_a_body_may_be_packed_in_several_members(served: Served, kind: str) -> None:
    body = (as_csv(QUESTIONS) if kind == CSV else as_lines(QUESTIONS)).encode()
    half = len(body) // 2
    answers = asked(served, gzip.compress(body[:half]) + gzip.compress(body[half:]), kind)
    assert answers.text.count("\n") == len(QUESTIONS) + (kind == CSV)
    refused = served.client.post(
        "/v1/models/tennis/predict", data=body, content_type=kind, headers={"Content-Encoding": "br"}
    )
    assert_problem(refused, 415)


def many(kind: str, n_rows: int, *, bad: int | None = None) -> str:
    winds = ["Weak" if row != bad else "5\n" if kind == CSV else 5 for row in range(n_rows)]
    if kind == NDJSON:
        return as_lines([{"Wind": wind} for wind in winds])
    if bad is not None:
        winds[bad] = "Weak,one too many"
    return "Wind\n" + "\n".join(map(str, winds)) + "\n"


@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_an_error_in_the_middle_is_the_last_line_and_what_came_before_it_stands(
    served: Served, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction_streams, "ROWS_AT_ONCE", 200)
    monkeypatch.setattr(espalier, "batches_from_csv", small_batches)
    response = asked(served, many(kind, 1000, bad=700), kind, explain="none")
    assert response.status_code == 200
    if kind == CSV:
        *answers, last = csv_rows(response)
        assert (last["decision_id"], last["label"]) == ("", "")
        assert "line 702 has 2 cells" in last["error"]
    else:
        *answers, last = json_rows(response)
        assert last["problem"]["status"] == 422
        assert [fault["pointer"] for fault in last["problem"]["errors"]] == ["/rows/700/Wind"]
    assert 0 < len(answers) <= 700
    assert int(last["row"]) == len(answers)
    assert [int(one["row"]) for one in answers] == list(range(len(answers)))
    assert decided(served, answers[-1]["decision_id"])["input"] == {"Wind": "Weak"}


small_batches_of = espalier.batches_from_csv


def small_batches(schema: espalier.Schema, stream: Any) -> Iterator[espalier.RowBatch]:
    return small_batches_of(schema, stream, size=1000)


@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_the_decisions_of_a_batch_are_committed_before_its_bytes_are_sent(
    served: Served, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction_streams, "ROWS_AT_ONCE", 200)
    monkeypatch.setattr(espalier, "batches_from_csv", small_batches)
    path = "/v1/models/tennis/predict?explain=none"
    response = served.client.post(path, data=many(kind, 1000), content_type=kind, buffered=False)
    content, n_pieces = "", 0
    for piece in response.response:
        content, n_pieces = content + piece.decode(), n_pieces + 1
        *whole, _ = content.split("\n")
        if len(whole) <= 1:
            continue
        found = whole[-1].split(",")[1] if kind == CSV else json.loads(whole[-1])["decision_id"]
        with read_session(served.service.sessions) as session:
            assert decisions.find(session, found).input == {"Wind": "Weak"}
    assert n_pieces >= 3


@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_a_log_that_cannot_be_written_ends_the_stream(
    served: Served, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction_streams, "ROWS_AT_ONCE", 200)
    monkeypatch.setattr(espalier, "batches_from_csv", small_batches)
    count, insert = itertools.count(), decision_log.insert_records

    def failing(*given: Any) -> None:
        if next(count) >= 2:
            raise Unavailable("the disk is full")
        insert(*given)

    monkeypatch.setattr(decision_log, "insert_records", failing)
    response = asked(served, many(kind, 1000), kind, explain="none")
    lines = csv_rows(response) if kind == CSV else json_rows(response)
    last = lines[-1]
    assert "disk is full" in (last["error"] if kind == CSV else last["problem"]["detail"])
    with read_session(served.service.sessions) as session:
        logged = decisions.list_decisions(session, decisions.Filter(), limit=200)
    assert logged.items[0].id == lines[-2]["decision_id"] or len(lines) - 1 > 200


def test_more_rows_than_a_data_set_may_have_end_the_stream(settings: Settings) -> None:
    with serving(settings, max_rows=5, max_cell_chars=10) as served:
        served.train("tennis")
        for kind in (CSV, NDJSON):
            assert "at most 5" in assert_problem(asked(served, many(kind, 6), kind), 413)["detail"]
            long = "Wind\n" + "x" * 11 + "\n" if kind == CSV else as_lines([{"Wind": "x" * 11}])
            assert "at most 10" in assert_problem(asked(served, long, kind), 413)["detail"]


@ON_SQLITE
def test_a_record_of_a_stream_has_no_more_rows_than_a_chunk_of_a_data_set(served: Served) -> None:
    text = asked(served, "Wind\n" + "Weak\n" * 400_000, explain="none").text
    sizes = Counter(line.split(",")[1].partition(":")[0] for line in text.splitlines()[1:])
    assert sum(sizes.values()) == 400_000
    assert max(sizes.values()) <= 65_536


def test_a_body_beyond_the_limit_of_others_streams(settings: Settings) -> None:
    with serving(settings, max_body_mb=1) as served:
        served.train("tennis")
        body = "Wind\n" + "Weak\n" * 300_000
        assert len(body) > 2**20
        response = asked(served, body, explain="none")
        assert response.text.count("\n") == 300_001


@ON_SQLITE
@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_a_body_beyond_the_limit_of_uploads_is_refused_packed_or_not(settings: Settings, kind: str) -> None:
    with serving(settings, max_upload_mb=1) as served:
        served.train("tennis")
        line = "Weak\n" if kind == CSV else '{"Wind":"Weak"}\n'
        body = "Wind\n" * (kind == CSV) + line * (2**20 // len(line) + 1)
        assert len(body) > 2**20
        assert_problem(asked(served, body, kind), 413)
        assert_problem(asked(served, gzip.compress(body.encode()), kind), 413)
        assert served.client.get("/v1/decisions").get_json()["items"] == []


@ON_SQLITE
def test_a_body_of_exactly_the_limit_of_uploads_is_read_packed_or_not(settings: Settings) -> None:
    with serving(settings, max_upload_mb=1) as served:
        served.train("tennis")
        for n_more, status in ((0, 200), (1, 413)):
            body = "Wind\nWeak\n"
            body += "\n" * (2**20 - len(body) + n_more)
            assert asked(served, body).status_code == status
            assert asked(served, gzip.compress(body.encode())).status_code == status


def test_texts_that_a_spreadsheet_would_take_for_formulas_are_escaped(served: Served) -> None:
    text = 'a,"=b",target\n1,x,=1+1\n1,x,=1+1\n2,y,"-say ""no"", or\nyes"\n2,y,"-say ""no"", or\nyes"\n'
    served.train("odd", text, preset="cart", target="target")
    response = asked(served, "a\n1\n2\n", model="odd")
    answers = csv_rows(response)
    assert [one["label"] for one in answers] == ["'=1+1", '\'-say "no", or\nyes']
    assert [one["missing"] for one in answers] == ["'=b", "'=b"]
    assert all(float(one["support"]) == 2 for one in answers)
    whole = served.predict("odd", {"rows": [{"a": 1}]})["predictions"]
    assert whole[0]["label"] == "=1+1"


def test_labels_keep_their_type_in_lines_of_json(served: Served) -> None:
    served.train("flag", "x,y\n1,0\n1,0\n2,1\n2,1\n", preset="cart", target="y")
    answers = json_rows(asked(served, as_lines([{"x": 1}, {"x": 2}]), NDJSON, model="flag"))
    assert [one["label"] for one in answers] == [0, 1]
    assert [one["label"] for one in csv_rows(asked(served, "x\n1\n2\n", model="flag"))] == ["0", "1"]


def test_a_key_and_an_alias_stand_in_the_decisions_of_a_stream(served: Served) -> None:
    served.client.put("/v1/models/tennis/aliases/pilot", json={"version": 1})
    [line] = csv_rows(asked(served, "Wind\nWeak\n", alias="pilot"))
    assert decided(served, line["decision_id"])["alias"] == "pilot"
    response = served.client.post("/v1/models/tennis/versions/1/predict", data="Wind\nWeak\n", content_type=CSV)
    assert decided(served, csv_rows(response)[0]["decision_id"])["alias"] is None
