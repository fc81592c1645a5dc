"""Things that exist, for requests that are drawn from the OpenAPI document: ids, names, and bodies that fit them."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import espalier
from service.database.engine import transaction
from service.database.tables import Scope, State
from service.repositories import job_queue
from tests.service.guarded import token_of
from tests.service.served import TENNIS, Served

MODEL = "0"
ROW = {"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak"}
TENSOR = {"name": "Outlook", "shape": [2], "datatype": "BYTES", "data": ["Sunny", None]}


@dataclass
class Existing:
    """A service in which something of everything exists.

    Attributes:
        served: The application.
        data_set, decision, job: Ids of what is only looked at; the job has succeeded.
        document: A model document.
    """

    served: Served
    data_set: str = ""
    decision: str = ""
    job: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.data_set = self.served.train(MODEL, holdout={"fraction": 0.3})
        dataset = espalier.dataset_from_csv(TENNIS, target="PlayTennis")
        self.trained, trace = espalier.train_traced(dataset, "c45")
        self.served.keep(MODEL, self.trained, trace=trace)
        self.document = espalier.to_document(self.trained)
        self.decision = self.served.predict(MODEL, {"rows": [ROW]})["predictions"][0]["decision_id"]
        self.job = self.job_in(State.SUCCEEDED)
        for version in (1, 2):
            self.point("a", version)

    def point(self, alias: str, version: int) -> str:
        """Have an alias point at a version."""
        response = self.served.client.put(f"/v1/models/{MODEL}/aliases/{alias}", json={"version": version})
        assert response.status_code == 200, response.text
        return alias

    def uploaded(self) -> str:
        """Upload a data set that nothing uses."""
        return str(self.served.upload(TENNIS, target="PlayTennis")["id"])

    def model(self) -> str:
        """Make a model that has answered nothing."""
        name = f"m{next(self.numbers)}"
        self.served.keep(name, self.trained)
        return name

    def turned(self) -> str:
        """Make an alias that has pointed at two versions."""
        alias = f"b{next(self.numbers)}"
        self.point(alias, 1)
        return self.point(alias, 2)

    def key(self) -> str:
        """Make a key that nobody uses."""
        return token_of(self.served, Scope.READ).split("_")[1]

    def job_in(self, state: State) -> str:
        """Make a job and bring it to a state."""
        asked = {"model": MODEL, "dataset": self.data_set}
        job = str(self.served.post("/v1/training-jobs", asked).get_json()["id"])
        if state == State.CANCELLED:
            self.served.client.post(f"/v1/jobs/{job}/cancel")
        if state == State.SUCCEEDED:
            with transaction(self.served.service.sessions) as session:
                claim = job_queue.claim(session, worker="test", lease_seconds=60)
                assert claim is not None
                job_queue.finish(
                    session, claim, result={"model": MODEL, "version": 1, "version_id": "0", "summary": {}}
                )
        return job

    def place(self, operation: str) -> dict[str, Any]:
        """Give values for the path of an operation, of something that it can be done to."""
        usual: dict[str, Callable[[], Any]] = {
            "name": lambda: MODEL,
            "number": lambda: 2,
            "alias": lambda: "a",
            "data_set_id": lambda: self.data_set,
            "job_id": lambda: self.job,
            "decision_id": lambda: self.decision,
            "key_id": self.key,
        }
        own: dict[str, dict[str, Callable[[], Any]]] = {
            "PATCH /v1/datasets/{data_set_id}": {"data_set_id": self.uploaded},
            "DELETE /v1/datasets/{data_set_id}": {"data_set_id": self.uploaded},
            "POST /v1/jobs/{job_id}/cancel": {"job_id": lambda: self.job_in(State.QUEUED)},
            "POST /v1/jobs/{job_id}/retry": {"job_id": lambda: self.job_in(State.CANCELLED)},
            "DELETE /v1/models/{name}": {"name": self.model},
            "DELETE /v1/models/{name}/versions/{number}": {"name": self.model, "number": lambda: 1},
            "POST /v1/models/{name}/versions/{number}/archive": {"name": self.model, "number": lambda: 1},
            "POST /v1/models/{name}/aliases/{alias}/rollback": {"alias": self.turned},
        }
        wanted = own.get(operation, {})
        return {name: wanted.get(name, make)() for name, make in usual.items() if f"{{{name}}}" in operation}

    def body(self, operation: str) -> dict[str, Any] | None:
        """Give a body that fits what exists; None: any that fits the document does."""
        asked = {"dataset": self.data_set}
        bodies: dict[str, dict[str, Any]] = {
            "POST /v1/training-jobs": {**asked, "model": MODEL, "holdout": {"rows": [0, 3]}},
            "POST /v1/pruning-jobs": {"model": MODEL, "version": 1, "method": "reduced_error"},
            "POST /v1/evaluation-jobs": {**asked, "candidates": [{"preset": "c45"}], "folds": 2},
            "POST /v1/prediction-jobs": {**asked, "model": MODEL},
            "PATCH /v1/datasets/{data_set_id}": {"columns": [{"name": "Wind", "categories": ["Weak", "Strong"]}]},
            "PATCH /v1/models/{name}": {"mask": ["Wind"], "tags": ["a"], "retention_days": 7},
            "POST /v1/models/{name}/versions": dict(self.document),
            "PUT /v1/models/{name}/aliases/{alias}": {"version": 2},
            "POST /v1/models/{name}/predict": {"rows": [ROW]},
            "POST /v1/models/{name}/versions/{number}/predict": {"columns": {"Wind": ["Weak", None]}},
            "POST /v2/models/{name}/infer": {"inputs": [TENSOR]},
            "POST /v2/models/{name}/versions/{number}/infer": {"inputs": [TENSOR]},
            "POST /v1/models/{name}/consultations": {"known": {"Outlook": "Sunny"}},
            "POST /v1/decisions/{decision_id}/counterfactuals": {"immutable": ["Wind"]},
            "POST /v1/decisions/{decision_id}/outcome": {"label": "Yes"},
            "POST /v1/keys": {"name": "a", "scopes": ["read"]},
        }
        return bodies.get(operation)
