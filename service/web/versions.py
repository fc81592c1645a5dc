"""The page of a version: a tree that opens node by node, rules, importances, figures, and files to download."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from flask import Response, request, url_for
from markupsafe import escape

import espalier
from service.api.context import current_service
from service.api.routing import NUMBER
from service.database.engine import read_session
from service.database.tables import Scope, Version
from service.errors import NotFound, ServiceError
from service.repositories import aliases, datasets, models
from service.serialization.media_types import DOT, JSON, SVG, TEXT
from service.usecases import models as usecases
from service.usecases.datasets import MAX_CELLS
from service.usecases.outcomes import version_accuracy
from service.usecases.predictions import max_paths
from service.web.filters import cut, largest_shares
from service.web.forms import whole_number
from service.web.models import MODEL
from service.web.pages import pages, problem_of, render, see_other
from service.web.tree_pictures import is_tree, picture, trail

VERSION = f"{MODEL}/{NUMBER}"
MAX_FOUND = 40  # listed nodes that test an attribute whose name contains the searched text
MAX_CLASSES = 12
MAX_MATRIX = 12  # classes of a confusion matrix on a page
MAX_IMPORTANCES = 40
MAX_RULES = 100
MAX_LINES = 30
MAX_SECONDS = 10.0  # of the evaluation of a data set: many missing values have many paths
LINE_CHARS = 300
ROWS_SHOWN = 20
FIGURES = {
    "n_rows": "rows",
    "errors": "errors",
    "accuracy": "accuracy",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
}
SIZES = {"n_nodes": "nodes", "n_leaves": "leaves", "depth": "depth", "n_rules": "rules"}
DOCUMENT = "model.json"

FILES: Mapping[str, tuple[str, str, Callable[[espalier.Model], str]]] = {
    "tree.svg": (SVG, "the picture", espalier.to_svg),
    "tree.txt": (TEXT, "the tree as text", lambda model: espalier.to_text(model, most_nodes=200_000)),
    "tree.dot": (DOT, "for Graphviz", lambda model: espalier.to_dot(model, most_nodes=20_000)),
    "tree.mmd": (TEXT, "for Mermaid", lambda model: espalier.to_mermaid(model, most_nodes=20_000)),
    "rules.txt": (TEXT, "the rules as sentences", lambda model: espalier.to_text(_rules_of(model))),
    "rules-logic.txt": (TEXT, "the rules as logic", lambda model: espalier.to_logic(_checked(model))),
}
EXPORTS: Mapping[str, str] = {f"{form}.{one.ending}": form for form, one in espalier.EXPORTS.items()}
TREE_ONLY = frozenset(name for name in FILES if name.startswith("tree."))


class _Deadline(espalier.Progress):
    """Progress of work that is stopped after `MAX_SECONDS`."""

    def __init__(self) -> None:
        super().__init__()
        self._end = time.monotonic() + MAX_SECONDS

    def check(self) -> None:
        """Raise `Cancelled` after the end."""
        if time.monotonic() > self._end:
            self.stop()
        super().check()


@pages.page(VERSION, Scope.READ)
def version(name: str, number: int) -> Response:
    """Show a version."""
    return _version_page(name, number)


@pages.page(f"{VERSION}/archive", Scope.TRAIN, methods=("POST",))
def archive(name: str, number: int) -> Response:
    """Archive a version, which then no longer answers requests."""
    try:
        with current_service().changing_versions() as session:
            usecases.archive_version(session, name, number)
    except ServiceError as error:
        return _version_page(name, number, problem_of(error, "version"))
    return see_other("version", name=name, number=number)


@pages.page(f"{VERSION}/tree", Scope.READ)
def tree(name: str, number: int) -> Response:
    """Show another part of the tree, with the figures of a node, as a part of the page."""
    _, model = loaded(name, number)
    return render("_tree.html", name=name, number=number, **tree_values(name, number, model))


@pages.page(f"{VERSION}/rules", Scope.READ)
def rules(name: str, number: int) -> Response:
    """Show the first rules, as a part of the page."""
    _, model = loaded(name, number)
    n_rules = model.body.n_rules if isinstance(model.body, espalier.RuleList) else model.body.n_leaves
    reason, lines = "", []
    try:
        lines = espalier.to_text(_rules_of(model)).splitlines()
    except espalier.NotApplicable as error:  # too many, or linear models in the leaves
        reason = str(error)
    shown = lines[:MAX_RULES]  # without the default rule, if it comes after MAX_RULES rules
    is_cut = len(lines) > len(shown)
    return render("_rules.html", reason=reason, n_rules=n_rules, lines=shown, is_cut=is_cut, name=name, number=number)


@pages.page(f"{VERSION}/exports", Scope.READ)
def exports(name: str, number: int) -> Response:
    """List the export files, as a part of the page; if a format cannot express this version, show the reason."""
    _, model = loaded(name, number)
    reason, obstacles = "", {}
    try:
        obstacles = espalier.applicable_exports(_checked(model))
    except espalier.NotApplicable as error:  # too many rules
        reason = str(error)
    formats = [(file, espalier.EXPORTS[form].meaning, obstacles.get(form)) for file, form in EXPORTS.items()]
    return render("_exports.html", name=name, number=number, reason=reason, formats=formats)


@pages.page(f"{VERSION}/figures", Scope.READ)
def figures(name: str, number: int) -> Response:
    """Show figures and confusion matrices on training rows, held-out rows and outcomes, as a part of the page."""
    row, model = loaded(name, number)
    with read_session(current_service().sessions) as session:
        outcomes = version_accuracy(session, current_service().models, name, number)
        table = _stored_rows(session, row)
    parts = []
    if table is not None:
        with suppress(espalier.Cancelled):
            parts = list(_evaluations(model, table))
    return render("_figures.html", parts=parts, outcomes=outcomes, classes=model.schema.classes, most=MAX_MATRIX)


@pages.page(f"{VERSION}/rows", Scope.READ)
def rows_of_node(name: str, number: int) -> Response:
    """Show how many rows of the version's data set reach a node, and the first of them, as a part of the page."""
    row, model = loaded(name, number)
    node = _node(model, "node")
    with read_session(current_service().sessions) as session:
        table = _stored_rows(session, row)
        if table is None:
            return render("_rows.html", rows=None)
        places, is_exact = _rows_at(model, table, node)
        shown = table.take(places[:ROWS_SHOWN]).rows()
    names = [feature.name for feature in table.schema.features][:50]
    return render(
        "_rows.html",
        rows=shown,
        places=places[:ROWS_SHOWN].tolist(),
        n_rows=len(places),
        is_exact=is_exact,
        names=names,
    )


@pages.page(f"{VERSION}/files/<path:file>", Scope.READ)
def download(name: str, number: int, file: str) -> Response:
    """Return the document of a version, or the model in another form, as a file."""
    _, model = loaded(name, number)
    if file == DOCUMENT:
        with read_session(current_service().sessions) as session:
            return _attachment(models.find_version(session, name, number).document, JSON, f"{name}-{number}-{file}")
    if file in EXPORTS:
        content = espalier.export_model(_checked(model), EXPORTS[file])
        return _attachment(content, espalier.EXPORTS[EXPORTS[file]].media_type, f"{name}-{number}-{file}")
    if file not in FILES:
        raise NotFound("file", file)
    media_type, _, write = FILES[file]
    return _attachment(write(model), media_type, f"{name}-{number}-{file}")


def loaded(name: str, number: int) -> tuple[Version, espalier.Model]:
    """Return a version and its decoded model."""
    service = current_service()
    with read_session(service.sessions) as session:
        row = models.find_version(session, name, number)
        return row, service.models.get(session, row.id).model


def tree_values(name: str, number: int, model: espalier.Model) -> dict[str, Any]:
    """Return the values for the template of the tree: picture, trail, selected node and nodes found."""
    if not is_tree(model):
        return {"tree": None}
    body, node, find = model.tree, _node(model, "node"), request.args.get("find", "").strip()[:200]
    root = node if body.size[node] > 1 else _node(model, "root")
    if not root <= node < root + int(body.size[root]):
        root = int(body.parent[node])

    found = _nodes_found(model, find) if find else []

    def link(to: int) -> str:
        place: dict[str, Any] = {"name": name, "number": number, "node": to, "root": root}
        whole, part = (escape(url_for(f"pages.{endpoint}", **place)) for endpoint in ("version", "tree"))
        # The script moves the focus from a box to the box with the same id in the new picture.
        target = f'id="box-{to}" hx-target="#tree" hx-swap="outerHTML"'
        return f'href="{whole}" hx-get="{part}" {target} hx-push-url="{whole}"'

    return {
        "tree": body,
        "root": root,
        "picture": picture(model, root=root, link=link, selected=node if node != root or node else None),
        "trail": [(one, _node_name(model, one)) for one in trail(body, root)],
        "node": _node_facts(model, node),
        "is_weighted": model.schema.weight is not None,
        "find": find,
        "nodes_found": found[:MAX_FOUND],
        "more_found": len(found) > MAX_FOUND,
    }


def _version_page(name: str, number: int, problem: Any = None) -> Response:
    row, model = loaded(name, number)
    with read_session(current_service().sessions) as session:
        pointing = aliases.pointing_at(session, row.model_id, row.id)
    config = espalier.config_to_dict(model.config)
    preset = espalier.PRESETS.get(model.config.preset)
    own = espalier.config_to_dict(preset) if preset is not None else {}
    return render(
        "version.html",
        name=name,
        number=number,
        row=row,
        pointing=pointing,
        importances=_importances(model),
        config=sorted(config.items(), key=lambda item: item[1] == own.get(item[0])),
        own=own,
        summary=row.summary,
        figures=_figures(model.training.train, row.summary.get("holdout") or {}),
        sizes=[(text, row.summary[key]) for key, text in SIZES.items() if row.summary.get(key) is not None],
        files=_files(model),
        problem=problem,
        **tree_values(name, number, model),
    )


def _figures(training: Mapping[str, Any], held_out: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the name of each figure, with its values on training rows and on held-out rows."""
    known = {**training, **held_out}
    return [(text, training.get(key), held_out.get(key)) for key, text in FIGURES.items() if key in known]


def _files(model: espalier.Model) -> list[tuple[str, str]]:
    files = [(key, text) for key, (_, text, _) in FILES.items() if is_tree(model) or key not in TREE_ONLY]
    return [(DOCUMENT, "the model document"), *files]


def _importances(model: espalier.Model) -> list[tuple[str, float]]:
    try:
        shares = espalier.attribute_importances(model)
    except espalier.NotApplicable:
        return []
    ranked = sorted(shares.items(), key=lambda one: -one[1])
    return [(cut(name), share) for name, share in ranked[:MAX_IMPORTANCES] if share > 0]


def _node(model: espalier.Model, name: str) -> int:
    """Return the node that the query names, or the root if it names no node that exists."""
    node = whole_number(request.args.get(name, "")) or 0
    return node if node < model.tree.n_nodes else 0


def _node_name(model: espalier.Model, node: int) -> str:
    place = int(model.tree.feature[node])
    return f"node {node}" if place < 0 else model.schema.attributes[place].name


def _node_facts(model: espalier.Model, node: int) -> dict[str, Any]:
    body = model.tree
    lines = espalier.to_text(model, node=node, depth=1).splitlines()
    is_leaf = bool(body.size[node] == 1)
    shares = body.stats[node] / max(float(body.weight[node]), 1e-300) if model.schema.classes else ()
    shown = [line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}…" for line in lines[:MAX_LINES]]
    left_out = [f"and {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
    return {
        "number": node,
        "is_leaf": is_leaf,
        "name": _node_name(model, node),
        "weight": float(body.weight[node]),
        "share": float(body.weight[node] / max(float(body.weight[0]), 1e-300)),
        "n_below": int(body.size[node]) - 1,
        "gain": None if is_leaf or np.isnan(body.gain[node]) else float(body.gain[node]),
        "classes": largest_shares(zip(model.schema.classes, map(float, shares), strict=True), most=MAX_CLASSES),
        "n_classes": len(model.schema.classes),
        "text": "\n".join(shown + left_out),
    }


def _nodes_found(model: espalier.Model, text: str) -> list[tuple[int, str, float]]:
    wanted = text.casefold()
    places = [place for place, one in enumerate(model.schema.attributes) if wanted in one.name.casefold()]
    nodes = np.flatnonzero(np.isin(model.tree.feature, places))[: MAX_FOUND + 1].tolist()
    return [(node, _node_name(model, node), float(model.tree.weight[node])) for node in nodes]


def _checked(model: espalier.Model) -> espalier.Model:
    usecases.check_rules(model)
    return model


def _rules_of(model: espalier.Model) -> espalier.Model:
    return espalier.extract_rules(_checked(model))


def _stored_rows(session: Any, row: Version) -> espalier.Dataset | None:
    """Return the data set that a version was trained on; None if it is not stored, or too large for a web process."""
    if row.data_set_id is None:
        return None
    data_set = datasets.find_data_set(session, row.data_set_id)
    if data_set.n_rows * len(data_set.declared["columns"]) > MAX_CELLS:
        return None
    return datasets.load_data_set(session, row.data_set_id)


def _rows_at(model: espalier.Model, table: espalier.Dataset, node: int) -> tuple[Any, bool]:
    """Return the rows that reach a node, also with a part of their weight.

    The second value is False if more rows may reach it, because a prediction lists at most `MAX_VISITS` paths.
    """
    answers = espalier.predict_table(model, table, most_paths=max_paths(model, current_service().settings))
    stop = node + int(model.tree.size[node])
    reaches, is_exact = (answers.leaves >= node) & (answers.leaves < stop), True
    for place, answer in answers.several.items():
        reaches[place] = any(node <= visit.leaf < stop for visit in answer.visits)
        is_exact &= bool(reaches[place]) or len(answer.visits) == answer.n_visits
    return np.flatnonzero(reaches), is_exact


def _evaluations(model: espalier.Model, table: espalier.Dataset) -> Iterator[tuple[str, espalier.Evaluation]]:
    """Yield the figures on training rows and held-out rows; raise `Cancelled` if they take too long for a page."""
    holdout, progress = model.training.holdout, _Deadline()
    aside = np.zeros(table.n_rows, bool)
    if holdout is not None:
        aside[espalier.held_out_rows(holdout, table)] = True
    for title, rows in (("Training rows", ~aside), ("Held-out rows", aside)):
        if rows.any():
            yield title, espalier.evaluate(model, table.take(np.flatnonzero(rows)), progress=progress)


def _attachment(content: str | bytes, media_type: str, name: str) -> Response:
    return Response(content, mimetype=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})
