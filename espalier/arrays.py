"""Types of arrays, by their dtype; docstrings give the shape, such as ``float64 (n_rows, n_classes)``."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]
"""Indexes of rows, nodes or other entries."""
Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
