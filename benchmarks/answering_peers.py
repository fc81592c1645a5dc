"""Peers that grow no tree: each compiles or converts scikit-learn's tree, and predicts by its own public function."""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from benchmarks.tables import Floats

LEAVES: Final = "leaf"
SHARES: Final = "label and distribution"

Predictor = Callable[[Any], Any]


def _onnxruntime(model: Any) -> dict[str, Predictor]:
    import onnxruntime  # noqa: PLC0415 - only in its own process
    from skl2onnx import to_onnx  # noqa: PLC0415 - as above

    example = np.zeros((1, model.n_features_in_), np.float32)
    graph = to_onnx(model, example, options={id(model): {"zipmap": False}})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _n_threads()
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), sess_options=options, providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name
    return {SHARES: lambda rows: session.run(None, {name: rows})}


def _treelite(model: Any) -> dict[str, Predictor]:
    import treelite  # noqa: PLC0415 - as above

    tree = treelite.sklearn.import_model(_forest_of(model))
    return {
        LEAVES: lambda rows: treelite.gtil.predict_leaf(tree, rows, nthread=_n_threads()),
        SHARES: lambda rows: treelite.gtil.predict(tree, rows, nthread=_n_threads()),
    }


def _tl2cgen(model: Any) -> dict[str, Predictor]:
    """Return TL2cgen's predictor. Only the first call with an array converts the array to TL2cgen's data type."""
    import tl2cgen  # noqa: PLC0415 - as above
    import treelite  # noqa: PLC0415 - as above

    library = Path(tempfile.mkdtemp()) / "tree.so"
    tree = treelite.sklearn.import_model(_forest_of(model))
    tl2cgen.export_lib(tree, toolchain="gcc", libpath=str(library), params={"parallel_comp": _n_threads()})
    predictor = tl2cgen.Predictor(str(library), nthread=_n_threads())
    ready: dict[int, Any] = {}

    def shares(rows: Floats) -> Any:
        if id(rows) not in ready:
            ready[id(rows)] = tl2cgen.DMatrix(rows, dtype="float32")
        return predictor.predict(ready[id(rows)])

    return {SHARES: shares}


def _forest_of(tree: Any) -> Any:
    """Return a forest of this one tree, since treelite reads forests."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - as above

    forest = RandomForestClassifier(n_estimators=1)
    forest.estimators_ = [tree]
    for name in ("n_features_in_", "n_outputs_", "n_classes_", "classes_"):
        setattr(forest, name, getattr(tree, name))
    return forest


def _n_threads() -> int:
    return len(os.sched_getaffinity(0))


ANSWERING_PEERS: Final[Mapping[str, Callable[[Any], dict[str, Predictor]]]] = MappingProxyType(
    {"onnxruntime": _onnxruntime, "treelite": _treelite, "tl2cgen": _tl2cgen}
)
