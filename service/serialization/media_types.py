"""The media types of the API."""

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
"""Maps the media type of an uploaded table to the core's name of its format."""

RESULTS: Final[Mapping[str, str]] = {"ndjson": NDJSON, "csv": CSV, "parquet": PARQUET}
"""Maps the name of a format for the answers of a prediction job to its media type; the first is the default."""
