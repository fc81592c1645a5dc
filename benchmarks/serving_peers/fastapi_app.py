"""FastAPI: scikit-learn's label."""

import os

import joblib
import numpy as np
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
MODEL = joblib.load(os.environ["PEER_MODEL"])


class Asked(BaseModel):
    """Rows of numbers."""

    rows: list[list[float]]


@app.post("/label")
def label(asked: Asked) -> dict[str, list[int]]:
    """Answer each row's class."""
    return {"predictions": MODEL.predict(np.asarray(asked.rows, dtype=np.float32)).tolist()}


class Named(BaseModel):
    """Rows of named numbers."""

    rows: list[dict[str, float]]


@app.post("/leaves")
def leaves(asked: Named) -> dict[str, list[int]]:
    """Answer each row's class and leaf."""
    names = [f"x{place}" for place in range(MODEL.n_features_in_)]
    cells = np.asarray([[row[name] for name in names] for row in asked.rows], dtype=np.float32)
    return {"predictions": MODEL.predict(cells).tolist(), "leaves": MODEL.apply(cells).tolist()}
