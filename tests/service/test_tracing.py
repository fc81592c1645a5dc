"""Spans, as a collector of OpenTelemetry receives them from a running service."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from service.errors import SettingsError
from service.tracing import Traces
from tests.acceptance.running import running, until

VALUE = "Vesuvius"
TENNIS = f"Outlook,Wind,Play\nSunny,Weak,No\nRain,Weak,Yes\nRain,Strong,No\n{VALUE},Weak,Yes\n"
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(ThreadingHTTPServer):
    """Takes spans as OTLP over HTTP."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.received = b""
        super().__init__(("127.0.0.1", 0), Receiving)

    def named(self, name: str) -> list[dict[str, Any]]:
        return [span for span in list(self.spans) if span["name"] == name]


class Receiving(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received += content
        for resource in ExportTraceServiceRequest.FromString(content).resource_spans:
            about = values(resource.resource.attributes)
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.server.spans.append(
                        {
                            "name": span.name,
                            "trace": span.trace_id.hex(),
                            "parent": span.parent_span_id.hex(),
                            "failed": span.status.code == 2,
                            "service": about["service.name"],
                            **values(span.attributes),
                        }
                    )
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def values(attributes: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        try:
            yield collector
        finally:
            collector.shutdown()


def test_a_request_is_a_part_of_its_callers_trace_and_a_job_has_a_span_and_neither_holds_data(tmp_path: Path) -> None:
    with collecting() as collector:
        where = {
            "ESPALIER_TRACES": "on",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        with running(tmp_path, **where) as service:
            job = service.train("asked", service.upload(TENNIS, target="Play"))
            answer = service.client.post(
                "/v1/models/asked/predict",
                json={"rows": [{"Outlook": VALUE, "Wind": "Weak"}]},
                headers={"traceparent": f"00-{TRACE}-{CALLER}-01"},
            )
            missing = service.client.get(f"/v1/models/{VALUE}")
            predicted, route = "POST /v1/models/<model:name>/predict", "GET /v1/models/<model:name>"
            until(
                lambda: collector.named(predicted) and collector.named(route) and collector.named("job"),
                what="three spans",
            )
        [span], [not_found], [worked] = map(collector.named, (predicted, route, "job"))
    assert (answer.status_code, missing.status_code) == (200, 404)
    assert span == {
        "name": predicted,
        "trace": TRACE,
        "parent": CALLER,
        "failed": False,
        "service": "espalier",
        "http.request.method": "POST",
        "http.route": "/v1/models/<model:name>/predict",
        "http.response.status_code": 200,
        "espalier.request_id": answer.headers["X-Request-Id"],
    }
    assert (not_found["http.response.status_code"], not_found["failed"]) == (404, False)
    assert {name: worked[name] for name in worked if name.startswith("espalier")} == {
        "espalier.job.id": job["id"],
        "espalier.job.kind": "train",
        "espalier.job.attempt": 1,
        "espalier.job.outcome": "succeeded",
    }
    assert VALUE.encode() not in collector.received


def test_traces_without_opentelemetry_are_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"pip install 'espalier\[traces\]'"):
        Traces()
