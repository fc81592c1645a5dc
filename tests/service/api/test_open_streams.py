"""What changes while a prediction stream is open holds for the rest of it."""

import json
from collections.abc import Iterator

import pytest

import espalier
from service.database.engine import transaction
from service.database.tables import Scope
from service.repositories import keys
from service.settings import Settings
from service.usecases import prediction_streams
from tests.service.api.test_prediction_streams import CSV, NDJSON, decided, many, small_batches
from tests.service.guarded import token_of
from tests.service.served import Served, serving


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        one.train("tennis")
        yield one


def opened(
    served: Served,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    batches: list[espalier.RowBatch] | None = None,
    **headers: str,
) -> Iterator[bytes]:
    """Open a stream of several batches, `batches` if they are given; give what comes, as it comes."""
    monkeypatch.setattr(prediction_streams, "ROWS_AT_ONCE", 200)
    read = small_batches if batches is None else lambda *_: iter(batches)
    monkeypatch.setattr(espalier, "batches_from_csv", read)
    path = "/v1/models/tennis/predict?explain=none"
    response = served.client.post(path, data=many(kind, 1000), content_type=kind, headers=headers)
    assert response.status_code == 200, response.text
    return iter(response.response)  # type: ignore[arg-type] # bytes


def last_line(kind: str, content: bytes) -> str:
    """Give why a stream ended."""
    line = content.decode().splitlines()[-1]
    return line if kind == CSV else str(json.loads(line)["problem"]["detail"])


@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_a_mask_holds_for_a_stream_that_is_open(served: Served, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = opened(served, kind, monkeypatch)
    first = next(pieces)
    assert served.client.patch("/v1/models/tennis", json={"mask": ["Wind"]}).status_code == 200
    rest = first + b"".join(pieces)
    lines = [line for line in rest.decode().splitlines() if "decision_id" not in line or kind == NDJSON]
    ids = [line.split(",")[1] if kind == CSV else json.loads(line)["decision_id"] for line in lines]
    assert len(ids) == 1000
    assert [decided(served, one)["input"] for one in (ids[0], ids[-1])] == [{"Wind": "Weak"}, {}]


def test_a_mask_holds_for_csv_that_is_read_row_by_row(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    # One piece of the text, all of which is read so where one cell of it is not as it should be.
    batches = [espalier.RowBatch(0, None, [{"Wind": "Weak"}] * 1000)]
    pieces = opened(served, CSV, monkeypatch, batches=batches)
    lines = next(pieces) + next(pieces)
    assert served.client.patch("/v1/models/tennis", json={"mask": ["Wind"]}).status_code == 200
    lines += b"".join(pieces)
    ids = [line.split(",")[1] for line in lines.decode().splitlines()[1:]]
    assert len(ids) == 1000
    assert [decided(served, one)["input"] for one in (ids[0], ids[-1])] == [{"Wind": "Weak"}, {}]


@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_an_archived_version_answers_no_more_of_a_stream_that_is_open(
    served: Served, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = opened(served, kind, monkeypatch)
    next(pieces)
    assert served.client.post("/v1/models/tennis/versions/1/archive").status_code == 200
    assert "is archived: it no longer answers" in last_line(kind, b"".join(pieces))


@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_a_version_that_is_deleted_ends_the_streams_that_are_open(
    settings: Settings, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(settings, decisions="off") as served:  # else its decisions keep it
        served.train("tennis")
        pieces = opened(served, kind, monkeypatch)
        next(pieces)
        assert served.client.delete("/v1/models/tennis").status_code == 204
        assert "there is no version 'tennis/1'" in last_line(kind, b"".join(pieces))


@pytest.mark.parametrize("kind", [CSV, NDJSON])
def test_a_key_that_is_revoked_ends_the_streams_that_it_opened(
    settings: Settings, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(settings, auth="keys") as served:
        served.train("tennis")
        token = token_of(served, Scope.PREDICT)
        pieces = opened(served, kind, monkeypatch, Authorization=f"Bearer {token}")
        next(pieces)
        with transaction(served.service.sessions) as session:
            keys.revoke(session, token.split("_")[1])
        served.service.keys.forget()  # as after a second
        assert "this key was revoked" in last_line(kind, b"".join(pieces))
