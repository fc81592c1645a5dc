"""The service, with keys on, answers as its OpenAPI document says: to requests drawn from it, and to broken ones.

Paths name what exists, so that the routes themselves answer, and every second body fits it; ESPALIER_TEST_REQUESTS says
how many requests a route gets.
"""

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import hypothesis
import pytest

from service.database.tables import Scope
from service.settings import Settings
from tests.service.existing import MODEL, Existing
from tests.service.guarded import token_of
from tests.service.served import TENNIS, Served, serving

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

ParameterLocation = schemathesis.core.parameters.ParameterLocation
N_REQUESTS = int(os.environ.get("ESPALIER_TEST_REQUESTS", "6"))
SETTINGS = hypothesis.settings(
    max_examples=N_REQUESTS,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    derandomize=True,
    database=None,
)
FOLLOWING = hypothesis.settings(SETTINGS, derandomize=False, stateful_step_count=12)
MANY = 4
"""Operations that a walk must reach: less would be no walk. `test_openapi_links` follows every link."""
ALWAYS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "ignored_auth",
)

OF_NAMES = {"invalid"}  # Unicode's printable signs: patterns of Python have no name for them
OF_TABLES = {  # what a text must be to be a table, and a table to be a data set: no schema of JSON says it
    *("empty", "ragged", "not_arff", "not_json", "not_csv", "not_parquet", "not_arrow", "unknown_format", "no_rows"),
    *("unknown_column", "duplicate", "ambiguous", "required", "task", "not_legal", "not_numeric", "wrong_type"),
    *("characters", "too_large", "length", "kind", "not_finite", "not_utf8", "value", "too_long", "out_of_range"),
}
OF_MODELS = {  # what is asked of attributes, classes and versions: each model has its own
    *("unknown_attribute", "unknown_value", "unknown_category", "unknown_version", "wrong_type", "not_legal"),
}
OF_TRAINING = {  # which fields go together, with each other and with the data
    *("combination", "required", "task", "criterion", "not_legal", "unknown_attribute", "unknown_class"),
    *("unknown_field", "unknown_value", "out_of_range", "no_weight", "no_training_rows", "learned_from"),
    *("unknown_data_set", "unknown_model", "unknown_version", "not_applicable", "kind", "leaf", "missing"),
    *("unknown_category", "target"),
}
UNSAID = {
    "POST /v1/datasets": OF_NAMES | OF_TABLES,
    "PATCH /v1/datasets/{data_set_id}": OF_TABLES | {"unknown_field"},
    "POST /v1/training-jobs": OF_TRAINING,
    "POST /v1/pruning-jobs": OF_TRAINING,
    "POST /v1/evaluation-jobs": OF_TRAINING | OF_NAMES,
    "POST /v1/prediction-jobs": OF_MODELS | {"unknown_data_set", "unknown_model"},
    "PATCH /v1/models/{name}": OF_MODELS | OF_NAMES,
    "GET /v1/models/{name}/versions/{number}/tree": {"not_legal"},  # how many nodes there are
    "GET /v1/models/{name}/versions/{number}/rules": {"unknown_class"},
    "POST /v1/models/{name}/predict": OF_MODELS | OF_NAMES | OF_TABLES,
    "POST /v1/models/{name}/versions/{number}/predict": OF_MODELS | OF_NAMES | OF_TABLES,
    "POST /v2/models/{name}/infer": OF_MODELS | OF_NAMES | {"length", "unknown_output"},
    "POST /v2/models/{name}/versions/{number}/infer": OF_MODELS | OF_NAMES | {"length", "unknown_output"},
    "POST /v1/models/{name}/consultations": OF_MODELS,
    "POST /v1/decisions/{decision_id}/counterfactuals": OF_MODELS,
    "POST /v1/decisions/{decision_id}/outcome": OF_MODELS,
    "DELETE /v1/decisions": OF_NAMES,
    "POST /v1/keys": OF_NAMES | {"out_of_range", "not_legal"},  # the moment is now; a key of an admin has no models
}
"""Codes with which a request that fits the document may be refused, by operation: what JSON Schema cannot say."""
IMPORT = "POST /v1/models/{name}/versions"  # a document is checked as hostile input: its schema is its outermost shell
EXPORT = "GET /v1/models/{name}/versions/{number}/export"  # whether a version can be exported depends on its tree


@pytest.fixture
def existing(settings: Settings) -> Iterator[Existing]:
    with serving(replace(settings, max_jobs=10**6, max_requests=10**6), auth="keys") as served:
        served.client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {token_of(served, Scope.ADMIN)}"
        yield Existing(served)


def on(database: str, *more: str, slow: bool) -> Any:
    """Return what one run gets; what is slow here runs with `make check-all`."""
    return pytest.param(database, *more, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        on("sqlite", "positive", slow=False),
        on("sqlite", "negative", slow=True),
        on("postgresql", "positive", slow=True),
        on("postgresql", "negative", slow=False),
    ],
    indirect=["settings"],
)
def test_every_answer_is_as_described(existing: Existing, mode: str) -> None:
    for operation in described(existing.served):
        answered = asked(existing, operation, mode)
        if mode == "positive":
            assert any(status < 400 for status in answered), (operation.label, answered)


@pytest.mark.parametrize("settings", [on("sqlite", slow=True), on("postgresql", slow=False)], indirect=True)
def test_what_one_answer_leads_to_is_as_described_too(existing: Existing) -> None:
    schema = described(existing.served)[0].schema
    reached, wrong = set(), []

    class Followed(schema.as_state_machine()):  # type: ignore[misc]
        def before_call(self, case: Any) -> None:
            if is_path_as_described(case):
                known = {"name": MODEL, "alias": "a"}
                case.path_parameters.update({name: known[name] for name in known if name in case.path_parameters})
            if case.meta is None or case.meta.generation.mode.is_positive:
                fill(existing, case, anew=True)

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": key_of(existing.served)}

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            if response.status_code < 400:
                reached.add(case.operation.label)
            try:
                case.validate_response(response, checks=checks_for(case, response), headers=key_of(existing.served))
            except Exception as error:
                wrong.append(error)
                raise

    # Which ways are drawn depends on what else the process has loaded: some go round in a few operations only.
    for attempt, turns in enumerate((2, 4, 8, 8, 16, 16, 16)):
        if len(reached) < MANY:
            hypothesis.seed(attempt)(Followed)
            # schemathesis draws from what was answered before, which hypothesis may find inconsistent.
            with suppress(hypothesis.errors.FlakyStrategyDefinition):
                Followed.run(settings=hypothesis.settings(FOLLOWING, max_examples=turns * N_REQUESTS))
    assert wrong == []
    assert len(reached) >= MANY, reached


def asked(existing: Existing, operation: Any, mode: str) -> set[int]:
    """Ask an operation for what is drawn from its description, and check the answers; give their statuses."""
    answered = set()
    turns = itertools.count()

    @SETTINGS
    @hypothesis.given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def holds(case: Any) -> None:
        place(existing, case)
        if mode == "positive":
            fill(existing, case, anew=next(turns) % 2 == 0)
        response = case.call(headers=key_of(existing.served))
        answered.add(response.status_code)
        case.validate_response(response, checks=checks_for(case, response), headers=key_of(existing.served))

    try:
        holds()
    except hypothesis.errors.Unsatisfiable:  # nothing can be wrong with a request without parameters
        assert mode == "negative", operation.label
    return answered


def described(served: Served) -> list[Any]:
    schema = schemathesis.openapi.from_wsgi("/openapi.json", served.client.application)
    return [found.ok() for found in schema.get_all_operations()]


def key_of(served: Served) -> dict[str, str]:
    return {"Authorization": served.client.environ_base["HTTP_AUTHORIZATION"]}


def place(existing: Existing, case: Any) -> None:
    """Have the path name what exists, unless what is wrong with the request is its path."""
    if is_path_as_described(case):
        case.path_parameters.update(existing.place(case.operation.label))


def is_path_as_described(case: Any) -> bool:
    """Say whether a path names something, and nothing that it must not."""
    part = None if case.meta is None else case.meta.components.get(ParameterLocation.PATH)
    return bool(case.path_parameters) and (part is None or part.mode.is_positive)


def fill(existing: Existing, case: Any, *, anew: bool) -> None:
    """Have the request be one of its own, and its body fit what exists: as a whole, or where it names something."""
    headers = case.headers if case.headers is not None else {}
    if "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = f"request-{next(existing.numbers)}"
    headers.pop("Inference-Header-Content-Length", None)  # of bytes behind the JSON, and there are none
    if anew and case.operation.label == "POST /v1/datasets":
        case.media_type, case.body, case.query = "text/csv", TENNIS, {"target": "PlayTennis"}
        return
    fitting = existing.body(case.operation.label)
    if case.media_type == "application/octet-stream":
        case.media_type, case.body = "application/json", fitting
    if case.media_type != "application/json":
        return
    if anew and fitting is not None:
        case.body = fitting
        if "/predict" in case.operation.path and case.query:  # of JSON these stand in the body
            case.query.clear()
    elif isinstance(case.body, dict):
        for name, value in {"dataset": existing.data_set, "model": MODEL}.items():
            if name in case.body:
                case.body[name] = value
    if case.query and "alias" in case.query:
        case.query["alias"] = "a"


def checks_for(case: Any, response: Any) -> list[Any]:
    """Leave out what the document cannot say: what fits it may be refused all the same, and what does not, for more."""
    asked_first = response.status_code == 412 and "If-Match" in case.headers
    if asked_first or response.status_code == 413:
        # Which ETag is right is not part of the document, and is checked before the body (RFC 9110, 13.2.1); so are
        # limits, and 413 is a refusal, too.
        return schemathesis.checks.CHECKS.get_by_names([name for name in ALWAYS if name != "negative_data_rejection"])
    checks = schemathesis.checks.CHECKS.get_by_names(ALWAYS)
    if response.status_code in (400, 413, 422):
        codes = {fault["code"] for fault in response.json()["errors"]}
        if case.operation.label in {IMPORT, EXPORT} or (codes and codes <= UNSAID.get(case.operation.label, set())):
            return checks
        if response.status_code == 413:  # limits are settings, not part of the document
            return checks
    return [*checks, *schemathesis.checks.CHECKS.get_by_names(["positive_data_acceptance"])]
