"""BentoML: scikit-learn's label."""

import os

import bentoml
import joblib
import numpy as np


@bentoml.service(workers=2)
class Tree:
    """A tree."""

    def __init__(self) -> None:
        """Load it."""
        self.model = joblib.load(os.environ["PEER_MODEL"])

    @bentoml.api
    def label(self, rows: list[list[float]]) -> list[int]:
        """Answer each row's class."""
        found: list[int] = self.model.predict(np.asarray(rows, dtype=np.float32)).tolist()
        return found
