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
