"""Flask: a constant answer, scikit-learn's label, and the label with the nodes of the row's path."""

import os
from pathlib import Path
from typing import Any

import orjson
from flask import Flask, Response, request

app = Flask(__name__)
JSON = "application/json"
ANSWER = Path(os.environ["PEER_ANSWER"]).read_bytes()


def _model() -> Any:
    import joblib  # noqa: PLC0415 - the constant answer needs no scikit-learn

    return joblib.load(os.environ["PEER_MODEL"])


MODEL = None if os.environ["PEER_KIND"] == "bare" else _model()


def _rows() -> Any:
    import numpy as np  # noqa: PLC0415 - as above

    return np.asarray(orjson.loads(request.get_data(cache=False))["rows"], dtype=np.float32)


@app.post("/bare")
def bare() -> Response:
    """Return the constant answer."""
    orjson.loads(request.get_data(cache=False))
    return Response(ANSWER, content_type=JSON)


@app.post("/label")
def label() -> Response:
    """Return the class of each row."""
    labels = MODEL.predict(_rows()).tolist()  # type: ignore[union-attr]
    return Response(orjson.dumps({"predictions": labels}), content_type=JSON)


@app.post("/path")
def path() -> Response:
    """Return the class of each row and the nodes of its path."""
    rows = _rows()
    labels = MODEL.predict(rows).tolist()  # type: ignore[union-attr]
    nodes = MODEL.decision_path(rows).indices.tolist()  # type: ignore[union-attr]
    return Response(orjson.dumps({"predictions": labels, "path": nodes}), content_type=JSON)
