"""What turned out to be true of decisions, and the accuracy that follows from it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from service.settings import Settings
from tests.service.served import HOURS, Served, assert_problem, serving

SUNNY = {"Outlook": "Sunny", "Humidity": "High"}  # answered No
OVERCAST = {"Outlook": "Overcast"}  # answered Yes


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        one.train("tennis")
        one.train("hours", HOURS, preset="cart", target="hours", task="regression")
        yield one


def decided(served: Served, *rows: dict[str, Any], model: str = "tennis", **more: Any) -> list[str]:
    return [one["decision_id"] for one in served.predict(model, {"rows": list(rows), **more})["predictions"]]


def tell(served: Served, decision_id: str, **said: Any) -> dict[str, Any]:
    response = served.post(f"/v1/decisions/{decision_id}/outcome", said)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.get_json()
    return found


def accuracy(served: Served, model: str = "tennis", version: int = 1) -> dict[str, Any]:
    response = served.client.get(f"/v1/models/{model}/versions/{version}/accuracy")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.get_json()
    return found


def test_accuracy_counts_answers_against_what_was_true(served: Served) -> None:
    assert accuracy(served) == {
        "model": "tennis",
        "version": 1,
        "n_outcomes": 0,
        "accuracy": None,
        "classes": ["No", "Yes"],
        "confusion": [[0, 0], [0, 0]],
    }
    no, yes, wrong, _ = decided(served, SUNNY, OVERCAST, SUNNY, SUNNY)
    assert tell(served, no, label="No")["right"] is True
    assert tell(served, yes, label="Yes")["right"] is True
    told = tell(served, wrong, label="Yes")
    assert (told["decision_id"], told["right"], told["label"]) == (wrong, False, "Yes")
    found = accuracy(served)
    assert (found["n_outcomes"], found["accuracy"]) == (3, pytest.approx(2 / 3))
    assert found["confusion"] == [[1, 0], [1, 1]]  # two true Yes, of which one was answered No


def test_the_last_word_on_a_decision_counts(served: Served) -> None:
    [single] = decided(served, SUNNY)
    tell(served, single, label="Yes")
    tell(served, single, label="No")
    assert accuracy(served)["confusion"] == [[1, 0], [0, 0]]


def test_decisions_of_streams_have_outcomes_too(served: Served) -> None:
    body = "Outlook,Humidity\nSunny,High\nOvercast,\n"
    response = served.client.post("/v1/models/tennis/predict?explain=none", data=body, content_type="text/csv")
    ids = [line.split(",")[1] for line in response.text.splitlines()[1:]]
    assert [tell(served, one, label="No")["right"] for one in ids] == [True, False]
    assert accuracy(served)["confusion"] == [[1, 1], [0, 0]]


def test_a_regression_is_measured_by_its_errors(served: Served) -> None:
    low, high = decided(served, {"size": 1}, {"size": 12}, model="hours", explain="none")
    answered = [served.client.get(f"/v1/decisions/{one}").get_json()["answer"]["value"] for one in (low, high)]
    assert tell(served, low, value=answered[0] - 1)["right"] is None
    tell(served, high, value=answered[1] + 3)
    found = accuracy(served, "hours")
    assert found["n_outcomes"] == 2
    assert (found["mae"], found["bias"]) == (pytest.approx(2), pytest.approx(-1))
    assert found["rmse"] == pytest.approx(5**0.5)


@pytest.mark.parametrize(("difference", "rmse"), [(1e100, 1e100), (1e-200, 0.0)])
def test_the_errors_of_extreme_numbers_are_finite(served: Served, difference: float, rmse: float) -> None:
    table = "size,hours\n" + "".join(f"{n},{n // 10 * 5}\n" for n in range(20))
    served.train("none", table, preset="cart", target="hours", task="regression")
    ones = decided(served, *[{"size": 0}] * 4, model="none", explain="none")
    for one in ones:
        tell(served, one, value=difference)
    assert accuracy(served, "none")["rmse"] == pytest.approx(rmse)


def test_of_reports_at_the_same_time_the_last_counts(served: Served) -> None:
    application = served.client.application

    def report(one: str) -> int:
        return application.test_client().post(f"/v1/decisions/{one}/outcome", json={"label": "No"}).status_code

    with ThreadPoolExecutor(8) as pool:
        for one in decided(served, *[SUNNY] * 5):
            assert list(pool.map(report, [one] * 8)) == [200] * 8
    assert accuracy(served)["n_outcomes"] == 5


def test_each_version_has_its_own_accuracy(served: Served) -> None:
    [of_first] = decided(served, SUNNY)
    served.train("tennis", preset="c45")
    [of_second] = decided(served, SUNNY)
    tell(served, of_first, label="No")
    tell(served, of_second, label="Yes")
    assert [accuracy(served, version=n)["accuracy"] for n in (1, 2)] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("model", "said", "pointer"),
    [
        ("tennis", {"label": "Perhaps"}, "/label"),
        ("tennis", {}, "/label"),
        ("tennis", {"label": None}, "/label"),
        ("tennis", {"label": ["No"]}, "/label"),
        ("tennis", {"value": 1.0}, "/value"),
        ("tennis", {"label": "No", "value": 1.0}, "/value"),
        ("tennis", {"label": "No", "when": 1}, "/when"),
        ("hours", {"label": "No"}, "/label"),
        ("hours", {}, "/value"),
        ("hours", {"value": "1"}, "/value"),
        ("hours", {"value": True}, "/value"),
        ("hours", {"value": None}, "/value"),
        ("hours", {"value": 1e200}, "/value"),
        ("hours", {"value": -1.1e100}, "/value"),
    ],
)
def test_what_cannot_be_true_is_refused(served: Served, model: str, said: dict[str, Any], pointer: str) -> None:
    [one] = decided(served, SUNNY if model == "tennis" else {"size": 3}, model=model)
    assert_problem(served.post(f"/v1/decisions/{one}/outcome", said), 422, pointer)
    assert accuracy(served, model)["n_outcomes"] == 0


def test_a_class_may_be_the_same_number_of_another_type(served: Served) -> None:
    served.train("numbers", "a,b\n1,0\n2,1\n3,0\n4,1\n", preset="cart", target="b", task="classification")
    [one] = decided(served, {"a": 2}, model="numbers")
    assert tell(served, one, label=1.0)["right"] is True
    assert accuracy(served, "numbers")["confusion"] == [[0, 0], [0, 1]]


def test_a_row_that_was_refused_has_no_outcome(served: Served) -> None:
    [one] = decided(served, {"Wind": 5}, on_error="skip")
    assert "refused" in assert_problem(served.post(f"/v1/decisions/{one}/outcome", {"label": "No"}), 409)["detail"]


def test_what_is_not_there_has_no_outcome_and_no_accuracy(served: Served) -> None:
    unknown = "01890000-0000-7000-8000-000000000000"
    assert_problem(served.post(f"/v1/decisions/{unknown}/outcome", {"label": "No"}), 404)
    assert_problem(served.client.get("/v1/models/tennis/versions/9/accuracy"), 404)


def test_above_a_thousand_classes_the_accuracy_comes_without_a_matrix(served: Served) -> None:
    csv = "x,y\n" + "".join(f"{row},c{row:04d}\n" for row in range(1_001))
    served.train("many", csv, preset="cart", target="y")
    right, wrong = served.post("/v1/models/many/predict", {"rows": [{"x": 7}, {"x": 8}]}).get_json()["predictions"]
    tell(served, right["decision_id"], label="c0007")
    tell(served, wrong["decision_id"], label="c0009")

    found = accuracy(served, "many")
    assert (found["n_outcomes"], found["accuracy"], len(found["classes"])) == (2, 0.5, 1_001)
    assert "confusion" not in found
    page = served.client.get("/ui/models/many/versions/1/figures").get_data(as_text=True)
    assert page.count("classes: too many for a matrix.") == 2  # of the training rows, and by outcomes
