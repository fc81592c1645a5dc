"""Compare two versions: differences first, both trees side by side, and the rows whose answer changes."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from flask import Response, request

import espalier
from service.api.context import current_caller, current_service
from service.database import MODEL_NAME
from service.database.engine import read_session
from service.database.tables import Scope, Version
from service.errors import ServiceError, ValidationFailed
from service.repositories import datasets, models
from service.usecases.datasets import MAX_CELLS
from service.usecases.predictions import max_paths
from service.web.forms import with_chosen
from service.web.pages import pages, problem_of, render
from service.web.training import listed_data_sets
from service.web.tree_pictures import DEPTH, is_tree, picture
from service.web.versions import loaded

MAX_LISTED = 300  # versions in a menu
MAX_ROWS = 50
MAX_COLUMNS = 40
REFERENCE = re.compile(rf"({MODEL_NAME})/([1-9][0-9]{{0,8}})")
SHOWN_FIGURES = (
    ("n_nodes", "nodes"),
    ("n_leaves", "leaves"),
    ("depth", "depth"),
    ("n_rules", "rules"),
    ("n_training_rows", "training rows"),
    ("train_accuracy", "accuracy on training rows"),
    ("rmse", "root mean squared error on training rows"),
)
HELD_OUT = (("accuracy", "accuracy on held-out rows"), ("rmse", "root mean squared error on held-out rows"))


@pages.page("/compare", Scope.READ)
def compare() -> Response:
    """Show two versions side by side."""
    typed = request.args
    with read_session(current_service().sessions) as session:
        numbers = models.version_numbers(session, names=current_caller().models)[:MAX_LISTED]
    listed = {f"{name}/{number}": f"{name}, version {number}" for name, number, _ in numbers}
    values: dict[str, Any] = {"sides": None, "changed": None}
    problem = None
    try:
        if typed.get("left") and typed.get("right"):
            values = _compared(typed)
    except (espalier.EspalierError, ServiceError) as error:
        problem = problem_of(error)
    return render(
        "compare.html",
        typed=typed,
        choices=with_chosen(listed, typed.get("left", ""), typed.get("right", "")),
        data_sets=listed_data_sets(typed.get("dataset", "")),
        problem=problem,
        **values,
    )


def _compared(typed: Mapping[str, str]) -> dict[str, Any]:
    sides = [(typed[side], *_loaded(typed[side], f"/{side}")) for side in ("left", "right")]
    (_, left_row, left), (_, right_row, right) = sides
    pictures: list[Any] = [None, None]
    if is_tree(left) and is_tree(right):
        marked = different_tests(left, right)
        pictures = [picture(left, marked=marked[0]), picture(right, marked=marked[1])]
    return {
        "sides": [(title, row, drawn) for (title, row, _), drawn in zip(sides, pictures, strict=True)],
        "parameters": _pairs(espalier.config_to_dict(left.config), espalier.config_to_dict(right.config)),
        "figures": _pairs(_figures(left_row), _figures(right_row)),
        "changed": _changed_rows(left, right, typed["dataset"]) if typed.get("dataset") else None,
    }


def different_tests(left: espalier.Model, right: espalier.Model) -> tuple[set[int], set[int]]:
    """Return, for each tree, the topmost nodes down to `DEPTH` at which the other tree has another test or answer."""
    marked: tuple[set[int], set[int]] = (set(), set())
    open_pairs = [(0, 0)]
    while open_pairs:
        first, second = open_pairs.pop()
        if left.tree.depths[first] > DEPTH:  # not in the picture
            continue
        if _test_of(left, first) != _test_of(right, second):
            marked[0].add(first)
            marked[1].add(second)
        else:
            open_pairs += zip(left.tree.children(first), right.tree.children(second), strict=False)
    return marked


def _test_of(model: espalier.Model, node: int) -> object:
    """Return the test or answer of a node in a form that can be compared between models."""
    tree = model.tree
    place = int(tree.feature[node])
    if place < 0:
        if tree.linear is not None:
            return model.config.smoothing, float(tree.linear.intercept[node]), tuple(tree.linear.terms(node))
        answer = espalier.leaf_prediction(model, node)
        return answer.label if model.schema.classes else answer.value
    feature = model.schema.attributes[place]
    codes = tuple(tree.codes(node).tolist()) if feature.unordered else ()
    threshold = None if np.isnan(tree.threshold[node]) else float(tree.threshold[node])
    return feature.name, int(tree.test[node]), threshold, codes, feature.categories if feature.coded else ()


def _loaded(reference: str, pointer: str) -> tuple[Version, espalier.Model]:
    match = REFERENCE.fullmatch(reference)
    if match is None:
        raise ValidationFailed.of(pointer, "invalid", "must be the name of a model, a slash, and a version")
    current_caller().check_model(match[1])
    return loaded(match[1], int(match[2]))


def _figures(row: Version) -> dict[str, Any]:
    held_out = row.summary.get("holdout") or {}
    return {text: row.summary.get(name) for name, text in SHOWN_FIGURES} | {
        text: held_out.get(name) for name, text in HELD_OUT
    }


def _pairs(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    names = [*left, *(name for name in right if name not in left)]
    return [(name, left.get(name), right.get(name)) for name in names]


def _changed_rows(left: espalier.Model, right: espalier.Model, data_set_id: str) -> dict[str, Any]:
    """Return how many rows of a data set the two models answer differently, and the first `MAX_ROWS` of them.

    Raises:
        TooLarge: The data set is larger than a web process reads, or its rows have too many paths.
        DataError: A model cannot read the data set.
    """
    with read_session(current_service().sessions) as session:
        row = datasets.find_data_set(session, data_set_id)
        if row.n_rows * len(row.declared["columns"]) > MAX_CELLS:
            raise espalier.TooLarge("cells of the data set on a page", MAX_CELLS)
        table = datasets.load_data_set(session, data_set_id)
    for model in (left, right):
        espalier.check_table(model, table.schema)
    answers = [_answers(model, table) for model in (left, right)]
    places = [place for place, (one, other) in enumerate(zip(*answers, strict=True)) if one != other]
    shown = places[:MAX_ROWS]
    return {
        "name": row.name,
        "n_rows": table.n_rows,
        "n_changed": len(places),
        "names": [feature.name for feature in table.schema.features][:MAX_COLUMNS],
        "rows": [
            (place, answers[0][place], answers[1][place], cells)
            for place, cells in zip(shown, table.take(np.array(shown, np.intp)).rows() if shown else [], strict=True)
        ],
    }


def _answers(model: espalier.Model, table: espalier.Dataset) -> list[Any]:
    predicted = espalier.predict_table(model, table, most_paths=max_paths(model, current_service().settings))
    if predicted.numbers is not None:
        return list(predicted.numbers.tolist())
    return predicted.labels()
