"""The service, with keys on, answers as its OpenAPI document says: to requests drawn from it, and to broken ones."""

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from service.settings import Settings
from service.tables import Scope
from tests.service.guarded import token_of
from tests.service.served import TENNIS, Served, serving

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

# Not asked: that what fits the document is accepted. It may still not fit the data: an attribute of another model.
ASKED = (
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


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings, auth="keys") as one:
        key = f"Bearer {token_of(one, Scope.ADMIN)}"
        one.client.environ_base["HTTP_AUTHORIZATION"] = key
        one.train("0")  # the shortest model name is what a generator tries first
        dataset = one.upload(TENNIS, target="PlayTennis")["id"]
        one.post("/v1/training-jobs", {"model": "0", "dataset": dataset})
        one.predict("0", {"rows": [{}, {"Outlook": "Sunny"}]})
        yield one


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_every_answer_is_as_described(served: Served, mode: str) -> None:
    described = schemathesis.openapi.from_wsgi("/openapi.json", served.client.application)
    key = served.client.environ_base["HTTP_AUTHORIZATION"]
    checks = schemathesis.checks.CHECKS.get_by_names(ASKED)
    quick = hypothesis.settings(
        max_examples=12,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        derandomize=True,
        database=None,
    )
    for found in described.get_all_operations():
        operation = found.ok()
        cases = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))

        @quick
        @hypothesis.given(case=cases)
        def holds(case: Any) -> None:
            case.call_and_validate(checks=checks, headers={"Authorization": key})

        try:
            holds()
        except hypothesis.errors.Unsatisfiable:  # nothing can be wrong with a request without parameters
            assert mode == "negative", operation.label
