"""Writes the golden documents of a format version: `python -m tests.golden.write v1`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from espalier import Dataset, Holdout, Model, dataset_from_csv, to_json, to_text, train
from tests.factories import REFERENCE, ROOT

GOLDEN: Final = Path(__file__).resolve().parent


def tennis(preset: str) -> Model:
    """The fourteen Saturdays of Quinlan (1986)."""
    return train(dataset_from_csv(ROOT / "service" / "examples" / "play_tennis.csv", target="PlayTennis"), preset)


def drug200() -> Model:
    """The data set and the very training rows of the seed."""
    test_rows = json.loads((REFERENCE / "expected" / "drug200_seed002.json").read_text())["test_rows"]
    return train(_read("drug200"), "cart", max_depth=4, holdout=Holdout(rows=tuple(sorted(test_rows))))


def cpu() -> Model:
    """A regression."""
    return train(_read("cpu"), "cart", max_depth=2)


MODELS: Final[dict[str, Callable[[], Model]]] = {
    "tennis_id3": lambda: tennis("id3"),
    "tennis_c45": lambda: tennis("c45"),
    "drug200_cart": drug200,
    "cpu_cart": cpu,
}


def write(version: str) -> None:
    """Write each document and its rendering, unless it is there."""
    for name, make in MODELS.items():
        document = GOLDEN / f"{name}.{version}.json"
        if not document.exists():
            model = make()
            document.write_bytes(to_json(model) + b"\n")
            document.with_suffix(".txt").write_text(to_text(model), encoding="utf-8")


def _read(name: str) -> Dataset:
    schema = json.loads((REFERENCE / "data" / f"{name}.schema.json").read_text())
    return dataset_from_csv(REFERENCE / "data" / schema["file"], schema=schema)


if __name__ == "__main__":
    write(sys.argv[1])
