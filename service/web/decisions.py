"""Decisions: the list with filters, and the printable page of one decision, with its replay."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from flask import Response, request

import espalier
from espalier import Fault
from service.api.context import current_caller, current_service, find_with_version
from service.database.engine import read_session, transaction
from service.database.tables import Outcome, Scope
from service.errors import ServiceError, ValidationFailed
from service.repositories import decisions as repository
from service.schemas.decisions import DecisionQuery
from service.schemas.fields import load_members
from service.usecases import decisions as usecases
from service.usecases.outcomes import is_right, record_outcome
from service.usecases.version_resolver import model_at_point
from service.web.filters import largest_shares
from service.web.forms import label_named, typed_value
from service.web.pages import pages, problem_of, render, see_other
from service.web.tree_pictures import is_tree, picture

SHOWN = 50
DECISION = "/decisions/<decision:decision_id>"
MOST = 3
MAX_CLASSES = 200
MAX_SHARES = 12
MAX_SHOWN_CELLS = 200
MAX_RULES = 100  # largest rule list that a page searches for counterfactuals; a thousand rules take seconds


@pages.page("/decisions", Scope.AUDIT)
def decision_list() -> Response:
    """List decisions, newest first, filtered by model, version, label, leaf, subject and time."""
    typed, problem, listed = request.args, None, None
    try:
        wanted = _filter(typed)
        with read_session(current_service().sessions) as session:
            listed = repository.list_decisions(session, wanted, limit=SHOWN, cursor=typed.get("cursor"))
    except ValidationFailed as error:
        problem = problem_of(error)
    items = () if listed is None else listed.items
    cursor = None if listed is None else listed.next
    return render("decisions.html", decisions=items, next=cursor, typed=typed, problem=problem)


@pages.page(DECISION, Scope.AUDIT)
def decision(decision_id: str) -> Response:
    """Show a decision: its answer and replay, its path, and its outcome."""
    return _decision_page(decision_id)


@pages.page(f"{DECISION}/outcome", Scope.PREDICT, methods=("POST",))
def report_outcome(decision_id: str) -> Response:
    """Store the outcome of a decision."""
    service, typed = current_service(), request.form
    decision, version = find_with_version(decision_id)
    classes = version.model.schema.classes
    text = typed.get("outcome", "")
    given = {"label": label_named(text, classes)} if classes else {"value": typed_value(text)}
    try:
        with transaction(service.sessions) as session:
            record_outcome(session, decision, version.model.schema, given, key_id=current_caller().key_id)
    except ServiceError as error:
        return _decision_page(decision_id, problem_of(error, "decision"))
    return see_other("decision", decision_id=decision_id)


@pages.page(f"{DECISION}/counterfactuals", Scope.AUDIT)
def counterfactuals(decision_id: str) -> Response:
    """Show the nearest changes that lead to another answer, as a part of the page."""
    decision, version = find_with_version(decision_id)
    classes, typed, body = version.model.schema.classes, request.args, version.model.body
    if isinstance(body, espalier.RuleList) and body.n_rules > MAX_RULES:
        return render("_counterfactuals.html", counterfactuals=None, n_rules=body.n_rules, decision_id=decision.id)
    wanted: dict[str, Any] = {"most": MOST, "immutable": typed.getlist("keep")}
    if typed.get("label"):
        wanted["label"] = label_named(typed["label"], classes)
    if not classes:
        low, high = (typed_value(typed.get(name, "").strip() or "null") for name in ("low", "high"))
        if low is None and high is None:
            return render("_counterfactuals.html", counterfactuals=None, wants_range=True)
        wanted["value_range"] = [low, high]
    return render("_counterfactuals.html", counterfactuals=usecases.counterfactuals(version, decision, wanted))


def _decision_page(decision_id: str, problem: Any = None) -> Response:
    decision, version = find_with_version(decision_id)
    model = model_at_point(version.model, decision.operating_point)
    replay = drawn = None
    if decision.leaf is not None:
        replay = usecases.replay(version, decision)
        if is_tree(model):
            drawn = picture(model, path=replay.explanation or usecases.as_logged(model, decision, replay.reason or ""))
    has_row = decision.leaf is not None and decision.erased is None and not decision.masked
    record_id, _, position = decision.id.partition(":")
    with read_session(current_service().sessions) as session:
        outcome = session.get(Outcome, (record_id, int(position or 0)))
    names = [attribute.name for attribute in model.schema.attributes if attribute.name in decision.input]
    return render(
        "decision.html",
        decision=decision,
        replay=replay,
        is_weighted=model.schema.weight is not None,
        picture=drawn,
        outcome=outcome,
        true_label=None if outcome is None or outcome.label is None else orjson.loads(outcome.label),
        is_right=None if outcome is None else is_right(outcome),
        rule=None if replay is None or replay.explanation is None else replay.explanation.rule,
        shares=largest_shares(decision.answer.get("distribution", {}).items(), most=MAX_SHARES),
        cells=[(name, decision.input[name]) for name in names[:MAX_SHOWN_CELLS]],
        n_left_out=max(0, len(names) - MAX_SHOWN_CELLS),
        classes=model.schema.classes[:MAX_CLASSES],
        has_counterfactuals=has_row and not (is_tree(model) and model.linear is not None),
        problem=problem,
    )


def _filter(typed: Mapping[str, str]) -> repository.Filter:
    """Return the filter of the query.

    Raises:
        ValidationFailed: There are faults; the error has all of them.
    """
    given = {name: typed[name] for name in ("label", "subject") if typed.get(name)}
    given |= {name: typed[name].strip() for name in ("model", "version", "leaf") if typed.get(name, "").strip()}
    if "cursor" in typed:
        given["cursor"] = typed["cursor"]
    members, faults = load_members(DecisionQuery(), given)
    times: dict[str, Any] = {
        f"{name}_time": _moment(typed.get(name, ""), f"/{name}", faults) for name in ("from", "to")
    }
    ValidationFailed.raise_for(faults)
    wanted = {name: members[name] for name in ("model", "version", "label", "leaf", "subject")}
    return repository.Filter(**wanted, **times, models=current_caller().models)


def _moment(text: str, pointer: str, faults: list[Fault]) -> datetime | None:
    text = text.strip()
    if not text:
        return None
    try:
        given = datetime.fromisoformat(text)
        return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    except (ValueError, OverflowError):
        faults.append(Fault(pointer, "wrong_type", "must be a date, or a date and time; without a time zone it is UTC"))
        return None
