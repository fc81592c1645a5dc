"""What leads on from an answer: the OpenAPI document's links, by which a client finds the routes of what it has made.

A link names a route and says where in the answer, or in the request before it, the values of its path stand.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DATA_SET = "/v1/datasets/{data_set_id}"
JOB = "/v1/jobs/{job_id}"
MODEL = "/v1/models/{name}"
VERSION = f"{MODEL}/versions/{{number}}"
ALIAS = f"{MODEL}/aliases/{{alias}}"
DECISION = "/v1/decisions/{decision_id}"
INFERENCE = "/v2/models/{name}"
JOBS = ("training", "pruning", "evaluation", "prediction")


@dataclass(frozen=True, slots=True)
class Leads:
    """Routes that an answer leads to.

    Attributes:
        path: Where they are.
        below: What is added to the path, and with which method it is asked.
        given: For each value of the path, the expression that finds it.
    """

    path: str
    below: Mapping[str, str]
    given: Mapping[str, str]


OF_DATA_SET = {"": "get patch delete", "/rows": "get", "/profile": "get"}
OF_JOB = {"": "get", "/events": "get", "/result": "get", "/cancel": "post", "/retry": "post"}
OF_MODEL = {"": "get patch delete", "/versions": "get post", "/aliases": "get", "/predict": "post"}
OF_VERSION = {
    "": "get delete",
    **{f"/{part}": "get" for part in ("tree", "rules", "importances", "document", "schema", "pruning", "accuracy")},
    "/archive": "post",
    "/predict": "post",
}
OF_ALIAS = {"": "put", "/history": "get", "/rollback": "post"}
OF_DECISION = {"": "get", "/explanation": "get", "/counterfactuals": "post", "/outcome": "post"}

MADE_BY_ID = "$response.body#/id"
PATH_NAME = {"name": "$request.path.name"}
LINKS: Mapping[tuple[str, str, str], tuple[Leads, ...]] = {
    ("post", "/v1/datasets", "201"): (Leads(DATA_SET, OF_DATA_SET, {"data_set_id": MADE_BY_ID}),),
    **{("post", f"/v1/{kind}-jobs", "202"): (Leads(JOB, OF_JOB, {"job_id": MADE_BY_ID}),) for kind in JOBS},
    ("post", f"{MODEL}/versions", "201"): (
        Leads(MODEL, OF_MODEL, PATH_NAME),
        Leads(VERSION, OF_VERSION, {**PATH_NAME, "number": "$response.body#/version"}),
        Leads(INFERENCE, {"": "get", "/ready": "get", "/infer": "post"}, PATH_NAME),
    ),
    ("put", ALIAS, "200"): (
        Leads(ALIAS, OF_ALIAS, {**PATH_NAME, "alias": "$request.path.alias"}),
        Leads(VERSION, OF_VERSION, {**PATH_NAME, "number": "$response.body#/version"}),
    ),
    ("post", f"{MODEL}/predict", "200"): (
        Leads(DECISION, OF_DECISION, {"decision_id": "$response.body#/predictions/0/decision_id"}),
        Leads(VERSION, OF_VERSION, {**PATH_NAME, "number": "$response.body#/version"}),
    ),
    ("post", f"{VERSION}/predict", "200"): (
        Leads(DECISION, OF_DECISION, {"decision_id": "$response.body#/predictions/0/decision_id"}),
    ),
    ("post", "/v1/keys", "201"): (Leads("/v1/keys/{key_id}", {"": "delete"}, {"key_id": MADE_BY_ID}),),
}
"""Method, path and status of an answer -> where it leads."""


def add_links(document: dict[str, Any]) -> None:
    """Write the links into an OpenAPI document."""
    for (method, path, status), leads in LINKS.items():
        document["paths"][path][method]["responses"][status]["links"] = {
            name: link for one in leads for name, link in _links(one)
        }


def _links(leads: Leads) -> Iterator[tuple[str, dict[str, Any]]]:
    for below, methods in leads.below.items():
        path = f"{leads.path}{below}"
        place = path.replace("~", "~0").replace("/", "~1")
        for method in methods.split():
            words = [word for word in path.split("/")[2:] if not word.startswith("{")]
            yield (
                "-".join([method, *words]),
                {"operationRef": f"#/paths/{place}/{method}", "parameters": dict(leads.given)},
            )
