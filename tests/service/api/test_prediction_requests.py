"""Who may ask for predictions, how often, and what becomes of long bodies."""

import io
import tracemalloc
from collections.abc import Iterator

import orjson
import pytest

from service.database.engine import transaction
from service.database.tables import Scope
from service.repositories import keys
from service.settings import Settings
from tests.service.served import Served, assert_problem, serving

ROW = {"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak", "Temperature": "Hot"}
PATH = "/v1/models/tennis/predict"
INFER = "/v2/models/tennis/infer"
MIB = 2**20


def test_with_keys_the_scope_and_the_models_of_the_key_decide(on_sqlite: Settings) -> None:
    with serving(on_sqlite, auth="keys") as served:
        served.train("tennis")
        given = {"none": None, "no key": "Bearer esp_", "another way": "Basic YTpi"}
        with transaction(served.service.sessions) as session:
            for name, scopes, models in (
                ("predict", [Scope.PREDICT], None),
                ("read", [Scope.READ], None),
                ("admin", [Scope.ADMIN], None),
                ("this model", [Scope.PREDICT], ["tennis"]),
                ("another model", [Scope.PREDICT], ["other"]),
            ):
                given[name] = f"Bearer {keys.create(session, name=name, scopes=scopes, models=models)[1]}"
        body = {"inputs": [{"name": "Wind", "shape": [1], "datatype": "BYTES", "data": ["Weak"]}]}
        statuses = {}
        for name, token in given.items():
            headers = {} if token is None else {"Authorization": token}
            statuses[name] = served.client.post(PATH, json={"rows": [ROW]}, headers=headers).status_code
            assert served.client.post(INFER, json=body, headers=headers).status_code == statuses[name]

    assert statuses == {
        "none": 401,
        "no key": 401,
        "another way": 401,
        "predict": 200,
        "read": 403,
        "admin": 200,
        "this model": 200,
        "another model": 403,
    }


def test_each_request_counts_once_against_the_limit_of_its_key_whatever_comes_of_it(on_sqlite: Settings) -> None:
    with serving(on_sqlite, max_requests=3) as served:
        served.train("tennis")
        served.service.rate_limit.clock = lambda: 0.0
        bodies = [{"rows": [ROW]}, {"rows": []}, {"rows": [ROW]}, {"rows": [ROW]}]
        assert [served.post(PATH, body).status_code for body in bodies] == [200, 422, 200, 429]


class Parts(io.BytesIO):
    """A body that comes in parts of seven thousand bytes at most."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(7_000 if size is None or size < 0 else min(size, 7_000))


@pytest.fixture
def asked(on_sqlite: Settings) -> Iterator[Served]:
    with serving(on_sqlite) as served:
        served.train("tennis")
        yield served


def test_a_long_body_is_received_whole(asked: Served) -> None:
    rows = [ROW] * 500
    body = orjson.dumps({"rows": rows, "explain": "none"}).replace(b"},{", b"}," + b" " * (MIB // 200) + b"{")
    assert len(body) > 2 * MIB
    response = asked.client.post(
        PATH, input_stream=Parts(body), content_length=len(body), content_type="application/json"
    )
    assert len(response.get_json()["predictions"]) == len(rows)


def test_a_long_body_that_was_announced_and_does_not_come_takes_no_memory(asked: Served) -> None:
    tracemalloc.start()
    try:
        response = asked.client.post(
            PATH, input_stream=Parts(b'{"rows": ['), content_length=60 * MIB, content_type="application/json"
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert_problem(response, 400)
    assert peak < 20 * MIB
