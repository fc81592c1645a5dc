"""Many rows of a JSON body are answered as a table: the same answers, decisions and refusals as row by row."""

import io
import itertools
import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from sqlalchemy import select
from werkzeug.test import TestResponse

import espalier
from service.database.engine import read_session
from service.database.tables import DecisionRecord
from service.serialization.json_columns import MANY_ROWS, table_of_rows
from service.settings import Settings
from tests.service.served import Served, assert_problem, serving

N_ROWS = MANY_ROWS + 50
FEW = MANY_ROWS - 1
WINDS = ("weak", "strong", "")
Row = dict[str, Any]


def random_rows(n_rows: int, *, seed: int, missing: bool = True) -> list[Row]:
    """Draw rows: whole and broken numbers, some of them large, texts, and cells without a value."""
    draw = random.Random(seed)

    def cell(value: Any) -> Any:
        return None if missing and draw.random() < 0.1 else value

    return [
        {
            "size": cell(draw.choice([draw.randint(-5, 5), draw.gauss(0, 3), 2**53, -0.0])),
            "wind": cell(draw.choice(WINDS[:2])),
            "height": cell(draw.gauss(10, 4)),
        }
        for _ in range(n_rows)
    ]


def model_of(preset: str) -> espalier.Model:
    rows = random_rows(400, seed=1)
    for row in rows:
        score = (row["size"] or 0) > 0, row["wind"] == "weak", (row["height"] or 10) > 9
        row["target"] = sum(score) * 1.5 + (row["height"] or 0) / 7 if preset == "m5" else "abcd"[sum(score)]
    dataset = espalier.dataset_from_rows(rows, target="target", missing_values=["?"])
    return espalier.train(dataset, preset)


@pytest.fixture
def served(on_sqlite: Settings) -> Iterator[Served]:
    with serving(on_sqlite) as one:
        yield one


def sent(served: Served, body: bytes) -> TestResponse:
    return served.client.post("/v1/models/one/predict", data=body, content_type="application/json")


def bare(answers: list[Row]) -> list[Row]:
    return [{name: part for name, part in one.items() if name != "decision_id"} for one in answers]


def in_small_parts(served: Served, rows: list[Row], **more: Any) -> list[Row]:
    """Have rows answered so few at a time that each is read by itself."""
    parts = (rows[start : start + FEW] for start in range(0, len(rows), FEW))
    answers = (served.predict("one", {"rows": part, "explain": "none", **more})["predictions"] for part in parts)
    return list(itertools.chain.from_iterable(answers))


@pytest.mark.parametrize(
    ("preset", "missing"),
    [*itertools.product(("cart", "c45"), (None, "last_prediction", "fractional")), ("m5", None)],
)
def test_the_answers_are_those_of_the_rows_one_by_one(served: Served, preset: str, missing: str | None) -> None:
    model = model_of(preset)
    served.keep("one", model)
    rows = random_rows(N_ROWS, seed=2)
    assert table_of_rows(model, rows) is not None

    whole = served.predict("one", {"rows": rows, "explain": "none", "missing": missing})

    assert (whole["model"], whole["version"]) == ("one", 1)
    assert bare(whole["predictions"]) == bare(in_small_parts(served, rows, missing=missing))
    columns = {name: [row[name] for row in rows] for name in ("height", "wind")}
    by_column = served.predict("one", {"columns": columns, "explain": "none", "missing": missing})["predictions"]
    without_size = [{"height": row["height"], "wind": row["wind"]} for row in rows]
    assert bare(by_column) == bare(in_small_parts(served, without_size, missing=missing))


def test_every_answer_is_a_decision_that_explains_itself(served: Served) -> None:
    served.keep("one", model_of("c45"))
    rows = random_rows(N_ROWS, seed=3)
    answers = served.predict("one", {"rows": rows, "explain": "none", "subject": "Ada"})["predictions"]
    assert len({one["decision_id"] for one in answers}) == N_ROWS
    with read_session(served.service.sessions) as session:
        assert session.scalars(select(DecisionRecord.packed)).one() is not None
    for place in (0, 7, N_ROWS - 1):
        assert answers[place]["decision_id"].endswith(f":{place}")
        shown = served.client.get(f"/v1/decisions/{answers[place]['decision_id']}").get_json()
        assert (shown["input"], shown["subject"], shown["version"]) == (rows[place], "Ada", 1)
        assert shown["answer"] == bare(answers)[place]
        explained = served.client.get(f"/v1/decisions/{answers[place]['decision_id']}/explanation").get_json()
        assert explained["verified"] is True


@pytest.mark.parametrize(
    ("name", "cell", "pointers"),
    [
        ("size", True, ["/rows/201/size"]),
        ("size", "7", ["/rows/201/size"]),
        ("size", 10**400, ["/rows/201/size"]),
        ("wind", 3, ["/rows/201/wind"]),
        ("wind", ["weak"], ["/rows/201/wind"]),
        ("depth", 1.0, ["/rows/201/depth"]),
    ],
)
def test_what_is_wrong_with_a_row_is_said_of_it(served: Served, name: str, cell: Any, pointers: list[str]) -> None:
    served.keep("one", model_of("cart"))
    rows = random_rows(N_ROWS, seed=4)
    rows[201][name] = cell
    assert table_of_rows(model_of("cart"), rows) is None
    if cell != 10**400:  # no JSON for orjson
        assert_problem(served.post("/v1/models/one/predict", {"rows": rows, "explain": "none"}), 422, *pointers)


def test_rows_of_other_shapes_new_categories_and_marks_are_answered_one_by_one(served: Served) -> None:
    model = model_of("cart")
    served.keep("one", model)
    for name, cell in (("wind", "storm"), ("wind", "?"), ("size", "?")):
        rows = random_rows(N_ROWS, seed=5)
        rows[201][name] = cell
        assert table_of_rows(model, rows) is None
        answers = served.predict("one", {"rows": rows, "explain": "none"})["predictions"]
        assert answers[201]["flags"]["unseen" if cell == "storm" else "missing"] == [name] or name not in rows[201]
    rows = random_rows(N_ROWS, seed=5, missing=False)
    del rows[3]["wind"]
    assert table_of_rows(model, rows) is None
    answers = served.predict("one", {"rows": rows, "explain": "none"})["predictions"]
    assert [place for place, one in enumerate(answers) if one["flags"]["missing"]] == [3]


def test_a_whole_number_is_logged_as_it_was_given_or_as_the_same_number(served: Served) -> None:
    model = model_of("cart")
    served.keep("one", model)
    rows = random_rows(N_ROWS, seed=5)
    rows[201]["size"] = 2**53 + 1
    assert table_of_rows(model, rows) is None
    answers = served.predict("one", {"rows": rows, "explain": "none"})["predictions"]
    shown = served.client.get(f"/v1/decisions/{answers[201]['decision_id']}").get_json()
    assert shown["input"]["size"] == 2**53 + 1


def test_numbers_are_written_as_in_every_other_answer(served: Served) -> None:
    rows = [{"size": float(size), "height": float(size > 2)} for size in range(6)]
    served.keep("one", espalier.train(espalier.dataset_from_rows(rows, target="height", task="regression"), "cart"))
    asked = {"rows": [{"size": 5.0}] * N_ROWS, "explain": "none"}
    whole = served.post("/v1/models/one/predict", asked).text
    few = served.post("/v1/models/one/predict", asked | {"rows": asked["rows"][:2]}).text
    assert '"value":1.0,' in whole
    assert '"value":1.0,' in few


def test_a_strategy_that_the_model_cannot_take_is_logged_as_for_few_rows(served: Served) -> None:
    served.keep("one", model_of("m5"))
    rows = random_rows(N_ROWS, seed=7)
    for some in (rows, rows[:2]):
        asked = {"rows": some, "explain": "none", "missing": "fractional"}
        assert_problem(served.post("/v1/models/one/predict", asked), 422, "/missing")
    with read_session(served.service.sessions) as session:
        assert sorted(session.scalars(select(DecisionRecord.n_rows))) == [2, N_ROWS]


def test_a_number_that_means_missing_is_looked_at() -> None:
    rows = [{"size": size, "play": "no" if size > 2 else "yes"} for size in (1, 2, 3, 4)]
    model = espalier.train(espalier.dataset_from_rows(rows, target="play", missing_values=["-999"]), "cart")
    assert table_of_rows(model, [{"size": 1.0}]) is None


@pytest.mark.parametrize("mark", ["?", "nan", "inf", "1_000", "-999"])
def test_rows_are_logged_as_the_numbers_that_they_are_whatever_means_missing(settings: Settings, mark: str) -> None:
    rows = [{"size": size, "play": "no" if size > 2 else "yes"} for size in (1, 2, 3, 4)]
    model = espalier.train(espalier.dataset_from_rows(rows, target="play", missing_values=[mark]), "cart")
    asked = {"rows": [{"size": size} for size in range(N_ROWS)], "explain": "none"}
    with serving(settings) as one:
        one.keep("one", model)
        answers = one.predict("one", asked)["predictions"]
        shown = one.client.get(f"/v1/decisions/{answers[3]['decision_id']}").get_json()
    assert shown["input"] == {"size": 3}


def test_what_is_masked_is_not_kept_and_nothing_is_kept_where_the_log_is_off(settings: Settings) -> None:
    rows = random_rows(N_ROWS, seed=6)
    with serving(settings) as one:
        one.keep("one", model_of("cart"))
        assert one.client.patch("/v1/models/one", json={"mask": ["size"]}).status_code == 200
        answers = one.predict("one", {"rows": rows, "explain": "none"})["predictions"]
        shown = one.client.get(f"/v1/decisions/{answers[1]['decision_id']}").get_json()
        assert "size" not in shown["input"]
    with serving(settings, decisions="off") as one:
        unlogged = one.predict("one", {"rows": rows, "explain": "none"})
        assert (unlogged["audited"], unlogged["predictions"][0]["decision_id"]) == (False, None)
        assert bare(unlogged["predictions"]) == bare(answers)


@pytest.mark.parametrize(
    "body", [{}, {"subject": "Ada"}, {"subject": "A]a"}, {"explain": "path"}, {"missing": "last_prediction"}]
)
def test_the_order_of_the_members_of_a_body_does_not_matter(served: Served, body: Row) -> None:
    asked = {"rows": random_rows(N_ROWS, seed=8), "explain": "none"} | body
    served.keep("one", model_of("cart"))
    given, turned_round = (
        sent(served, orjson.dumps(text)).get_json() for text in (asked, dict(reversed(asked.items())))
    )
    assert bare(given["predictions"]) == bare(turned_round["predictions"])
    with read_session(served.service.sessions) as session:
        kept = session.execute(select(DecisionRecord.subject, DecisionRecord.missing, DecisionRecord.n_rows)).all()
    assert len(kept) == 2
    assert len(set(kept)) == 1


@pytest.mark.parametrize(
    ("body", "status", "pointers"),
    [
        ({"unknown": 1}, 422, ["/unknown"]),
        ({"missing": "guess"}, 422, ["/missing"]),
        ({"subject": ""}, 422, ["/subject"]),
        ({"columns": {}}, 422, [""]),
        ({"rows": [{"size": 1}] * 20_000}, 413, []),
        ({"rows": [{"size": 1}] * 300 + [{"size": "x"}]}, 422, ["/rows/300/size"]),
    ],
)
def test_bodies_are_refused_alike(served: Served, body: Row, status: int, pointers: list[str]) -> None:
    served.keep("one", model_of("cart"))
    asked = {"rows": random_rows(N_ROWS, seed=9), "explain": "none"} | body
    assert_problem(served.post("/v1/models/one/predict", asked), status, *pointers)


def test_what_is_no_json_is_no_json_behind_many_rows_either(served: Served) -> None:
    served.keep("one", model_of("cart"))
    rows = orjson.dumps(random_rows(N_ROWS, seed=9)).decode()
    for text in (
        f'{{"rows":{rows},"explain":"none"',
        f'{{"rows":{rows},"explain":"none"}}}}',
        f'{{"rows":{rows} "explain":"none"}}',
        f'{{"rows":{rows[:-1]},"explain":"none"}}',
    ):
        assert sent(served, text.encode()).status_code == 400
    missing = served.client.post("/v1/models/none/predict", json={"rows": [{}] * N_ROWS, "explain": "none"})
    assert missing.status_code == 404


def test_of_a_member_that_stands_there_twice_the_last_one_counts(served: Served) -> None:
    served.keep("one", model_of("cart"))
    rows, more = (orjson.dumps(random_rows(n_rows, seed=9)).decode() for n_rows in (N_ROWS, 3))
    text = f'{{"rows":{rows},"explain":"none","rows":{more}}}'
    assert len(sent(served, text.encode()).get_json()["predictions"]) == 3


def test_a_long_body_is_answered_whole_or_not_at_all(served: Served) -> None:
    served.keep("one", model_of("cart"))
    body = orjson.dumps({"rows": random_rows(2_000, seed=10), "explain": "none"})
    assert len(body) > 65_536
    assert len(sent(served, body).get_json()["predictions"]) == 2_000
    cut_off = served.client.post(
        "/v1/models/one/predict",
        input_stream=io.BytesIO(body[:-1]),
        content_type="application/json",
        headers={"Content-Length": str(len(body))},
    )
    assert cut_off.status_code == 400
    with read_session(served.service.sessions) as session:
        assert len(session.scalars(select(DecisionRecord.id)).all()) == 1
