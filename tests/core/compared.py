"""Data and candidates that tests of comparisons share."""

import espalier
from espalier.model_selection.candidates import Candidate
from tests.factories import ROOT


def drugs() -> espalier.Dataset:
    return espalier.dataset_from_csv(ROOT / "service" / "examples" / "drug200.csv", target="Drug")


def stump_and_tree() -> list[Candidate]:
    return [
        Candidate("stump", espalier.training_config("cart", max_depth=1)),
        Candidate("tree", espalier.training_config("cart")),
    ]


def weighted(weights: list[float]) -> espalier.Dataset:
    lines = [f"{place},{'yn'[place % 2]},{weight}" for place, weight in enumerate(weights)]
    return espalier.dataset_from_csv("a,y,w\n" + "\n".join(lines) + "\n", target="y", weight="w")
