"""Traces by OpenTelemetry, where ESPALIER_TRACES is on: a span a request and one an attempt at a job.

Where they go is said by OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS,
OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER, …). A span holds the route and not the path, and no value of a caller's data.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from service.errors import SettingsError
from service.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

NAME: Final = "espalier"
MISSING: Final = "ESPALIER_TRACES=on needs OpenTelemetry, which is not installed: pip install 'espalier[traces]'"


class Traces:
    """Begins spans and sends them off in the background: what cannot be sent is dropped, and a line says so.

    Raises:
        SettingsError: OpenTelemetry is not installed.
    """

    def __init__(self) -> None:
        try:
            # Imported here: it takes half a second and 12 MB, where it is asked for.
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
            from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise SettingsError([MISSING]) from error
        named = "OTEL_SERVICE_NAME" in os.environ or SERVICE_NAME in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        provider = TracerProvider(resource=Resource.create({} if named else {SERVICE_NAME: NAME}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer: Tracer = provider.get_tracer(NAME)

    def request(self, method: str, route: str, headers: Mapping[str, str]) -> "Span":
        """Begin the span of a request; it is a part of the trace that the caller's `traceparent` names.

        headers: by names in small letters.
        """
        from opentelemetry.trace import SpanKind  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        return self._tracer.start_span(
            f"{method} {route}",
            TraceContextTextMapPropagator().extract(headers),
            SpanKind.SERVER,
            {"http.request.method": method, "http.route": route},
        )

    def answered(self, span: "Span", status: int, request_id: str) -> None:
        """Say in the span of a request how it was answered."""
        from opentelemetry.trace import StatusCode  # noqa: PLC0415

        span.set_attributes({"http.response.status_code": status, "espalier.request_id": request_id})
        if status >= 500:
            span.set_status(StatusCode.ERROR)

    def job(self, attributes: Mapping[str, str | int]) -> "Span":
        """Begin the span of an attempt at a job."""
        return self._tracer.start_span("job", attributes=dict(attributes))


@contextmanager
def job_span(traces: Traces | None, *, job_id: str, kind: str, attempt: int) -> Iterator[Callable[..., None]]:
    """Have a span for an attempt at a job while the block runs; what it gives is told the outcome, and if it failed."""
    if traces is None:
        yield lambda _outcome, *, failed: None
        return
    from opentelemetry.trace import StatusCode  # noqa: PLC0415

    span = traces.job({"espalier.job.id": job_id, "espalier.job.kind": str(kind), "espalier.job.attempt": attempt})

    def say(outcome: str, *, failed: bool) -> None:
        span.set_attribute("espalier.job.outcome", outcome)
        if failed:
            span.set_status(StatusCode.ERROR)

    try:
        yield say
    except BaseException:
        span.set_status(StatusCode.ERROR)
        raise
    finally:
        span.end()


def spanning(settings: Settings) -> Traces | None:
    """Give what begins spans; None where they are not asked for.

    Raises:
        SettingsError: They are, and OpenTelemetry is not installed.
    """
    return Traces() if settings.traces == "on" else None
