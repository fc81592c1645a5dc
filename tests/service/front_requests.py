"""Bodies, paths and headers of predictions and inferences, right and wrong."""

from collections.abc import Mapping

ROW = {"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak", "Temperature": "Hot"}
BY_MODEL = "/v1/models/tennis/predict"
BODIES: Mapping[str, object] = {
    "one row": {"rows": [ROW]},
    "two rows": {"rows": [ROW, {**ROW, "Wind": "Strong"}]},
    "columns": {"columns": {name: [value] for name, value in ROW.items()}},
    "no explanation": {"rows": [ROW], "explain": "none"},
    "all of it": {"rows": [ROW], "explain": "full", "subject": "Nobody"},
    "missing": {"rows": [{"Outlook": None}], "missing": "default"},
    "another strategy": {"rows": [ROW], "missing": "fractional"},
    "unseen": {"rows": [{**ROW, "Wind": "None"}]},
    "NUL": {"rows": [{**ROW, "Wind": "We\0ak"}]},
    "NUL in a column": {"columns": {"Wind": ["Weak", "We\0ak"]}},
    "NUL, skipped": {"rows": [ROW, {**ROW, "Wind": "We\0ak"}], "on_error": "skip"},
    "NUL in a name": {"rows": [{**ROW, "Wi\0nd": "Weak"}]},
    "NUL in the subject": {"rows": [ROW], "subject": "a\0"},
    "a wrong cell": {"rows": [{**ROW, "Wind": 3}]},
    "a wrong cell, skipped": {"rows": [ROW, {**ROW, "Wind": [3]}], "on_error": "skip"},
    "another attribute": {"rows": [{**ROW, "Colour": "red"}]},
    "an unknown field": {"rows": [ROW], "explian": "none"},
    "no rows": {"rows": []},
    "nothing": {},
    "a list": [ROW],
    "no JSON": b'{"rows": [',
    "a lone surrogate": b'{"rows": [{"Wind": "\\ud800"}]}',
    "a long cell": {"rows": [{**ROW, "Wind": "x" * 20_000}]},
    "a bad subject": {"rows": [ROW], "subject": "a\u0007"},
    "too large for here": {"rows": [ROW], "subject": "x" * 100_000},
}
SKIPPED = ("a wrong cell, skipped", "NUL, skipped")
PATHS = (
    BY_MODEL,
    f"{BY_MODEL}?alias=steady",
    f"{BY_MODEL}?alias=nobody",
    f"{BY_MODEL}?alias=",
    f"{BY_MODEL}?explain=none",
    f"{BY_MODEL}?alias=steady&alias=nobody",
    "/v1/models/tennis/versions/1/predict",
    "/v1/models/tennis/versions/1/predict?alias=nobody",
    "/v1/models/tennis/versions/0/predict",
    "/v1/models/tennis/versions/01/predict",
    "/v1/models/tennis/versions/9/predict",
    "/v1/models/none/predict",
    "/v1/models/a%2Fb/predict",
    "/v1/models/tennis/predict/",
    "/v1/models//tennis/predict",
)
HEADERS: Mapping[str, Mapping[str, str | None]] = {
    "as usual": {},
    "of a name": {"HTTP_HOST": "localhost:9"},
    "of a stranger's name": {"HTTP_HOST": "example.com"},
    "of no name": {"HTTP_HOST": "a b"},
    "of a page": {"HTTP_ORIGIN": "https://app.example"},
    "of a page of elsewhere": {"HTTP_ORIGIN": "https://other.example"},
    "of another site": {"HTTP_SEC_FETCH_SITE": "cross-site"},
    "another type": {"CONTENT_TYPE": "text/plain"},
    "a type with more": {"CONTENT_TYPE": "application/json; charset=utf-8"},
    "no type": {"CONTENT_TYPE": None},
    "packed, it says": {"HTTP_CONTENT_ENCODING": "gzip"},
    "shorter than it says": {"CONTENT_LENGTH": "99"},
    "of no length": {"CONTENT_LENGTH": None},
    "of a length that is none": {"CONTENT_LENGTH": "7a"},
    "another method": {"REQUEST_METHOD": "PUT"},
    "with a name of its own": {"HTTP_X_REQUEST_ID": "mine", "HTTP_IDEMPOTENCY_KEY": "once"},
}

WIND = {"name": "Wind", "datatype": "BYTES", "shape": [1], "data": ["Weak"]}
MANY = {"name": "Wind", "datatype": "BYTES", "shape": [20], "data": ["Weak"] * 20}
INFER = "/v2/models/tennis/infer"
IN_BYTES = b'{"inputs": [{"name": "Wind", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 8}}]}'
INFERENCES: Mapping[str, object] = {
    "one row": {"inputs": [WIND]},
    "an id and a subject": {"inputs": [WIND], "id": "mine", "parameters": {"subject": "Nobody"}},
    "the path": {"inputs": [WIND], "outputs": [{"name": "decision_path"}, {"name": "label"}]},
    "outputs in bytes": {"inputs": [WIND], "parameters": {"binary_data_output": True}},
    "an answer worth packing": {"inputs": [MANY]},
    "NaN": b'{"inputs": [{"name": "Wind", "datatype": "BYTES", "shape": [1], "data": [NaN]}]}',
    "NUL": {"inputs": [{**WIND, "data": ["We\0ak"]}]},
    "NUL in the subject": {"inputs": [WIND], "parameters": {"subject": "a\0"}},
    "a wrong cell": {"inputs": [{**WIND, "data": [3]}]},
    "an infinite number": b'{"inputs": [{"name": "Wind", "datatype": "FP64", "shape": [1], "data": [Infinity]}]}',
    "a wrong shape": {"inputs": [{**WIND, "shape": [2]}]},
    "another type": {"inputs": [{**WIND, "datatype": "FP64", "data": [0.5]}]},
    "nothing": {},
    "a list": [WIND],
    "no JSON": b'{"inputs": [',
}
INFERENCE_PATHS = (
    INFER,
    "/v2/models/tennis/versions/1/infer",
    f"{INFER}?alias=steady",
    "/v2/models/tennis/versions/9/infer",
    "/v2/models/none/infer",
    "/v2/models/tennis/predict",
    "/v1/models/tennis/infer",
)
INFERENCE_HEADERS: Mapping[str, Mapping[str, str | None]] = {
    **HEADERS,
    "takes gzip": {"HTTP_ACCEPT_ENCODING": "gzip, deflate"},
    "takes deflate rather": {"HTTP_ACCEPT_ENCODING": "gzip;q=0.1, deflate"},
    "takes none": {"HTTP_ACCEPT_ENCODING": "identity, *;q=0"},
    "of bytes, it says": {"CONTENT_TYPE": "application/octet-stream"},
    "a length of its JSON": {"HTTP_INFERENCE_HEADER_CONTENT_LENGTH": "12"},
    "a length of its JSON that is none": {"HTTP_INFERENCE_HEADER_CONTENT_LENGTH": "a"},
}
