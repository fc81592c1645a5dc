"""Send an OpenTelemetry span for each request and each attempt at a job, if ESPALIER_TRACES is on.

OpenTelemetry's own variables configure the sending (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS,
OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER, …). A span has the route, not the path, and no value of a caller's data.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from service.errors import SettingsError

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

# OpenTelemetry is imported in the functions: it takes half a second and 12 MB.
NAME: Final = "espalier"
MISSING: Final = "ESPALIER_TRACES=on needs OpenTelemetry, which is not installed: pip install 'espalier[traces]'"


class Traces:
    """Begins spans and sends them in the background; spans that cannot be sent are dropped, with a log line.

    Raises `SettingsError` if OpenTelemetry is not installed.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
            from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
            from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise SettingsError([MISSING]) from error
        is_named = "OTEL_SERVICE_NAME" in os.environ or SERVICE_NAME in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        provider = TracerProvider(resource=Resource.create({} if is_named else {SERVICE_NAME: NAME}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer: Tracer = provider.get_tracer(NAME)
        self.extract = TraceContextTextMapPropagator().extract
        self.server, self.failed = SpanKind.SERVER, StatusCode.ERROR

    def request(self, method: str, route: str, headers: Mapping[str, str]) -> "Span":
        """Begin a request's span, in the trace of its `traceparent` if it has one; header names must be lower-case."""
        return self.tracer.start_span(
            f"{method} {route}",
            self.extract(headers),
            self.server,
            {"http.request.method": method, "http.route": route},
        )

    def answered(self, span: "Span", status: int, request_id: str) -> None:
        """Set the status and the request id in the span of a request; statuses from 500 on mark it as failed."""
        span.set_attributes({"http.response.status_code": status, "espalier.request_id": request_id})
        if status >= 500:
            span.set_status(self.failed)


@contextmanager
def job_span(traces: Traces | None, *, job_id: str, kind: str, attempt: int) -> Iterator[Callable[..., None]]:
    """Trace an attempt at a job; the caller's block calls the yielded function: ``function(outcome, failed=…)``."""
    if traces is None:
        yield lambda _outcome, *, failed: None
        return
    span = traces.tracer.start_span(
        "job", attributes={"espalier.job.id": job_id, "espalier.job.kind": str(kind), "espalier.job.attempt": attempt}
    )

    def set_outcome(outcome: str, *, failed: bool) -> None:
        span.set_attribute("espalier.job.outcome", outcome)
        if failed:
            span.set_status(traces.failed)

    try:
        yield set_outcome
    except BaseException:
        span.set_status(traces.failed)
        raise
    finally:
        span.end()
