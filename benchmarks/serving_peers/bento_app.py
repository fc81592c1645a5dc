"""BentoML: scikit-learn's label."""

import os

import bentoml
import joblib
import numpy as np


@bentoml.service(workers=2)
class Tree:
    """A service that predicts by scikit-learn's tree."""

    def __init__(self) -> None:
        """Load the tree."""
        self.model = joblib.load(os.environ["PEER_MODEL"])

    @bentoml.api
    def label(self, rows: list[list[float]]) -> list[int]:
        """Return the class of each row."""
        labels: list[int] = self.model.predict(np.asarray(rows, dtype=np.float32)).tolist()
        return labels
