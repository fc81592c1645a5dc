"""FastAPI: scikit-learn's label, and for rows with named numbers the label and the leaf."""

import os

import joblib
import numpy as np
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
MODEL = joblib.load(os.environ["PEER_MODEL"])


class NumberRows(BaseModel):
    """Rows of numbers."""

    rows: list[list[float]]


@app.post("/label")
def label(table: NumberRows) -> dict[str, list[int]]:
    """Return the class of each row."""
    return {"predictions": MODEL.predict(np.asarray(table.rows, dtype=np.float32)).tolist()}


class NamedRows(BaseModel):
    """Rows of named numbers."""

    rows: list[dict[str, float]]


@app.post("/leaves")
def leaves(table: NamedRows) -> dict[str, list[int]]:
    """Return the class and the leaf of each row."""
    names = [f"x{column}" for column in range(MODEL.n_features_in_)]
    cells = np.asarray([[row[name] for name in names] for row in table.rows], dtype=np.float32)
    return {"predictions": MODEL.predict(cells).tolist(), "leaves": MODEL.apply(cells).tolist()}
