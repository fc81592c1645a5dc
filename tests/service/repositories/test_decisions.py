"""The decision log: found again, replayed, compared."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

import espalier
from service.database.clock import utc_now
from service.database.engine import Sessions, read_session, transaction
from service.database.tables import DecisionRecord, Version
from service.errors import NotFound, ValidationFailed
from service.repositories import decisions
from service.repositories.decisions import Filter
from service.repositories.model_cache import LoadedVersion, ModelCache, load_version
from service.usecases.decisions import replay as replay_decision
from tests.service.kept import context_of, keep_version

YOUNG: dict[str, Any] = {"age": 30, "pressure": "HIGH"}
OLD: dict[str, Any] = {"age": 70.5, "pressure": "HIGH"}
LOW: dict[str, Any] = {"age": None, "pressure": "LOW"}


@pytest.fixture
def version(source: Sessions) -> LoadedVersion:
    kept = keep_version(source)
    with read_session(source) as session:
        return load_version(session, kept.id)


def answer(source: Sessions, version: LoadedVersion, *rows: dict[str, Any], subject: str | None = None) -> list[str]:
    predictions = espalier.predict(version.model, rows)
    answers = [prediction.to_dict() for prediction in predictions]
    return log(source, version, rows, answers, [prediction.nodes for prediction in predictions], subject=subject)


def log(
    source: Sessions,
    version: LoadedVersion,
    rows: Sequence[dict[str, Any]],
    answers: Sequence[dict[str, Any]],
    nodes: Sequence[tuple[int, ...]],
    *,
    subject: str | None = None,
) -> list[str]:
    record = decisions.row_record(
        context_of(version, subject=subject),
        attributes=version.attributes,
        inputs=rows,
        answers=answers,
        nodes=nodes,
        milliseconds=1.25,
    )
    with transaction(source) as session:
        decisions.add(session, record)
    return decisions.decision_ids(record["id"], len(rows))


def find(source: Sessions, decision_id: str) -> decisions.Decision:
    with read_session(source) as session:
        return decisions.find(session, decision_id)


def listed(source: Sessions, **wanted: Any) -> list[str]:
    with read_session(source) as session:
        return [decision.id for decision in decisions.list_decisions(session, Filter(**wanted)).items]


def test_a_single_decision_is_found_as_it_was_answered(source: Sessions, version: LoadedVersion) -> None:
    before = utc_now()
    [decision_id] = answer(source, version, YOUNG, subject="patient 7")

    found = find(source, decision_id)

    [prediction] = espalier.predict(version.model, [YOUNG])
    assert found.input == YOUNG
    assert found.answer["label"] == prediction.label == "A"
    assert (found.leaf, found.nodes) == (prediction.leaf, prediction.nodes)
    assert (found.model_name, found.version, found.version_id) == ("drugs", 1, version.id)
    assert found.document_sha256 == version.document_sha256
    assert (found.subject, found.alias, found.milliseconds) == ("patient 7", None, 1.25)
    assert found.missing == version.model.config.missing
    assert before <= found.time <= utc_now()


def test_the_decisions_of_a_batch_are_numbered_and_share_one_record(source: Sessions, version: LoadedVersion) -> None:
    ids = answer(source, version, YOUNG, OLD, LOW)

    batch = ids[0].partition(":")[0]
    assert ids == [f"{batch}:0", f"{batch}:1", f"{batch}:2"]
    assert [find(source, decision_id).answer["label"] for decision_id in ids] == ["A", "B", "C"]
    assert [find(source, decision_id).input for decision_id in ids] == [YOUNG, OLD, LOW]
    assert [find(source, decision_id).id for decision_id in ids] == ids
    with read_session(source) as session:
        assert session.scalars(select(DecisionRecord.n_rows)).all() == [3]


def test_what_is_no_attribute_is_not_kept(source: Sessions, version: LoadedVersion) -> None:
    [decision_id] = answer(source, version, YOUNG | {"drug": "A"})

    assert find(source, decision_id).input == YOUNG


def test_the_path_is_not_kept_in_the_answer(source: Sessions, version: LoadedVersion) -> None:
    [explanation] = espalier.explain(version.model, [YOUNG])
    [decision_id] = log(source, version, [YOUNG], [explanation.to_dict()], [explanation.prediction.nodes])

    assert set(find(source, decision_id).answer) == {
        "label",
        "distribution",
        "confidence",
        "support",
        "leaf",
        "flags",
    }


@pytest.mark.parametrize("suffix", [":0", ":1", ":-1", ":x", "x", ":00"])
def test_a_single_decision_has_no_other_name(suffix: str, source: Sessions, version: LoadedVersion) -> None:
    [decision_id] = answer(source, version, YOUNG)

    with pytest.raises(NotFound):
        find(source, decision_id + suffix)


def test_a_batch_has_no_decision_without_a_number_or_beyond_its_end(source: Sessions, version: LoadedVersion) -> None:
    batch = answer(source, version, YOUNG, OLD)[0].partition(":")[0]

    for wrong in (batch, f"{batch}:2", f"{batch}:01"):
        with pytest.raises(NotFound, match="there is no decision"):
            find(source, wrong)


@pytest.mark.parametrize("decision_id", ["", "none", "0" * 36, "' OR 1=1 --", "\0"])
def test_nonsense_is_not_found(decision_id: str, source: Sessions) -> None:
    with pytest.raises(NotFound):
        find(source, decision_id)


@pytest.mark.parametrize("row", [YOUNG, OLD, LOW, {}, {"pressure": "never seen"}], ids=str)
def test_a_decision_is_replayed_to_the_same_answer_and_verified(
    row: dict[str, Any], source: Sessions, version: LoadedVersion
) -> None:
    [decision_id] = answer(source, version, row)

    replay = replay_decision(version, find(source, decision_id))

    assert replay.verified
    assert replay.explanation.to_dict() == espalier.explain(version.model, [row])[0].to_dict()


def test_every_decision_of_a_batch_is_verified(source: Sessions, version: LoadedVersion) -> None:
    ids = answer(source, version, YOUNG, OLD, LOW)

    assert all(replay_decision(version, find(source, decision_id)).verified for decision_id in ids)


def test_a_decision_is_explained_by_its_own_version_after_a_newer_one_came(source: Sessions) -> None:
    cache = ModelCache()
    first = keep_version(source)
    with read_session(source) as session:
        [decision_id] = answer(source, cache.get(session, first.id), YOUNG)
    keep_version(source)

    decision = find(source, decision_id)
    with read_session(source) as session:
        replay = replay_decision(cache.get(session, decision.version_id), decision)

    assert decision.version == 1
    assert replay.verified


@pytest.mark.parametrize(
    "changed",
    [
        {"answers": [{"label": "B", "leaf": 1}]},
        {"inputs": [OLD]},
        {"nodes": [[0]]},
        {"document_sha256": "0" * 64},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_changed_record_is_not_verified(changed: dict[str, Any], source: Sessions, version: LoadedVersion) -> None:
    [decision_id] = answer(source, version, YOUNG)
    with transaction(source) as session:
        session.execute(update(DecisionRecord).values(**changed))

    assert not replay_decision(version, find(source, decision_id)).verified


def test_a_changed_document_is_not_verified(source: Sessions, version: LoadedVersion) -> None:
    [decision_id] = answer(source, version, YOUNG)
    other = espalier.to_json(
        espalier.train(espalier.dataset_from_csv("age,pressure,drug\n1,HIGH,A\n2,LOW,B\n", target="drug"))
    )
    with transaction(source) as session:
        session.execute(update(Version).values(document=other))

    with read_session(source) as session:
        changed = load_version(session, version.id)
    assert not replay_decision(changed, find(source, decision_id)).verified


def test_decisions_are_listed_by_what_they_are(source: Sessions, version: LoadedVersion) -> None:
    [young] = answer(source, version, YOUNG, subject="p1")
    [old] = answer(source, version, OLD, subject="p2")
    batch = answer(source, version, YOUNG, LOW)
    leaf = find(source, old).leaf

    assert listed(source) == [*batch, old, young]
    assert listed(source, label="A") == [batch[0], young]
    assert listed(source, leaf=leaf) == [old]
    assert listed(source, subject="p1") == [young]
    assert listed(source, model="drugs", version=1) == [*batch, old, young]
    assert listed(source, model="others") == []
    assert listed(source, version=2) == []


def test_decisions_are_listed_by_time(source: Sessions, version: LoadedVersion) -> None:
    [early] = answer(source, version, YOUNG)
    [late] = answer(source, version, OLD)
    moment = find(source, late).time
    with transaction(source) as session:
        session.execute(
            update(DecisionRecord).where(DecisionRecord.id == early).values(time=moment - timedelta(hours=1))
        )

    assert listed(source, from_time=moment) == [late]
    assert listed(source, to_time=moment) == [early]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7])
def test_pages_hold_every_decision_once(limit: int, source: Sessions, version: LoadedVersion) -> None:
    expected = []
    for rows in ([YOUNG], [OLD, LOW, YOUNG], [LOW], [YOUNG, OLD]):
        expected = [*answer(source, version, *rows), *expected]

    found: list[str] = []
    cursor = None
    while True:
        with read_session(source) as session:
            page = decisions.list_decisions(session, Filter(), limit=limit, cursor=cursor)
        assert len(page.items) <= limit
        found += [decision.id for decision in page.items]
        cursor = page.next
        if cursor is None:
            break

    assert found == expected


def test_a_page_looks_through_a_bounded_number_of_records_and_says_where_to_go_on(
    source: Sessions, version: LoadedVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MAX_RECORDS_A_PAGE", 2)
    [wanted, _] = answer(source, version, OLD, YOUNG)
    for _ in range(3):
        answer(source, version, YOUNG, YOUNG)

    found: list[str] = []
    cursor, n_pages = None, 0
    while cursor is not None or n_pages == 0:
        with read_session(source) as session:
            page = decisions.list_decisions(session, Filter(label="B"), cursor=cursor)
        found += [decision.id for decision in page.items]
        cursor, n_pages = page.next, n_pages + 1

    assert found == [wanted]
    assert 2 <= n_pages <= 5


@pytest.mark.parametrize("n_rows", [2, 3])
def test_a_record_with_as_many_rows_as_a_page_decodes_hides_no_older_one(
    n_rows: int, source: Sessions, version: LoadedVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MAX_ROWS_A_PAGE", 2)
    [wanted] = answer(source, version, OLD)
    answer(source, version, *[YOUNG] * n_rows)

    found: list[str] = []
    cursor = None
    for _ in range(2):
        with read_session(source) as session:
            page = decisions.list_decisions(session, Filter(label="B"), cursor=cursor)
        found += [decision.id for decision in page.items]
        cursor = page.next

    assert (found, cursor) == ([wanted], None)


@pytest.mark.parametrize("subject", ["", "x" * 201, "a\0b"])
def test_a_subject_that_cannot_be_stored_is_rejected(subject: str, source: Sessions, version: LoadedVersion) -> None:
    with pytest.raises(ValidationFailed) as caught:
        answer(source, version, YOUNG, subject=subject)

    assert [fault.path for fault in caught.value.faults] == ["/subject"]


def test_a_text_with_any_character_is_kept_as_given(source: Sessions, version: LoadedVersion) -> None:
    row = {"pressure": 'quote ", emoji 🌳, line\n'}
    [decision_id] = answer(source, version, row)

    found = find(source, decision_id)

    assert found.input == row
    assert replay_decision(version, found).verified


def test_a_row_that_would_be_refused_now_is_kept_as_given_and_shown_without_a_replay(
    source: Sessions, version: LoadedVersion
) -> None:
    row = {"pressure": "NUL \0"}
    [prediction] = espalier.predict(version.model, [{"pressure": "unseen"}])
    [decision_id] = log(source, version, [row], [prediction.to_dict()], [prediction.nodes])

    found = find(source, decision_id)
    replay = replay_decision(version, found)

    assert found.input == row
    assert (replay.explanation, replay.verified, replay.erased) == (None, None, ())
    assert replay.reason == "the row was answered then, and would be refused now"


def test_a_version_with_decisions_cannot_be_deleted(source: Sessions, version: LoadedVersion) -> None:
    answer(source, version, YOUNG)

    with pytest.raises(Exception, match="another request changed"), transaction(source) as session:
        session.delete(session.get_one(Version, version.id))
