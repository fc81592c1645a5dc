"""The media types of the API, each once."""

from collections.abc import Mapping
from typing import Final

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"
ARROW: Final = "application/vnd.apache.arrow.stream"
ARFF: Final = "text/x-arff"
MULTIPART: Final = "multipart/form-data"
BYTES: Final = "application/octet-stream"
TEXT: Final = "text/plain"
HTML: Final = "text/html"
XML: Final = "application/xml"
PMML: Final = "application/pmml+xml"
SVG: Final = "image/svg+xml"
DOT: Final = "text/vnd.graphviz"
EVENTS: Final = "text/event-stream"
PROBLEM: Final = "application/problem+json"

TABLES: Final[Mapping[str, str]] = {
    CSV: "csv",
    JSON: "json",
    NDJSON: "ndjson",
    PARQUET: "parquet",
    ARROW: "arrow",
    ARFF: "arff",
}
"""The core's name of the format of an uploaded table, by its media type."""

RESULTS: Final[Mapping[str, str]] = {"ndjson": NDJSON, "csv": CSV, "parquet": PARQUET}
"""Media types of the answers of a prediction job, by the name of the format; the first is the default."""
