"""What is said of a test with a branch a category: calls of Python grow with the branches, not with their square."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import espalier
from tests.core.counted_calls import n_calls

ASKED: dict[str, Callable[[espalier.Model], Any]] = {
    "rules": espalier.rules_to_dict,
    "the rules as text": lambda model: espalier.to_text(espalier.extract_rules(model)),
    "a class": lambda model: espalier.class_dnf(model, "yes"),
}


def model_of(n_towns: int) -> espalier.Model:
    rows = [{"town": f"town {place}", "play": "yes" if place % 3 else "no"} for place in range(n_towns)]
    return espalier.train(espalier.dataset_from_rows(rows, target="play"), "id3")


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_four_times_the_branches_are_not_sixteen_times_the_work(ask: Callable[[espalier.Model], Any]) -> None:
    ask(model_of(10))  # what is loaded, or kept, at the first time
    few, many = (n_calls(partial(ask, model_of(n_towns))) for n_towns in (100, 400))

    assert many < 8 * few  # in proportion: four times; with the square: up to sixteen


def test_the_rules_of_many_branches_are_those_of_each_town() -> None:
    found = espalier.rules_to_dict(model_of(50))["rules"]

    assert len(found) == 50
    assert {tuple(one["conditions"][0]["in"]) for one in found} == {(f"town {place}",) for place in range(50)}
