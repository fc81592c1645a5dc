"""The pages of data sets: upload one, show and change its inferred declaration, delete it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request

import espalier
from service.api.context import current_service
from service.api.request_bodies import open_file
from service.database.engine import read_session, transaction
from service.database.tables import DataSet, Scope
from service.errors import PreconditionFailed, ServiceError, ValidationFailed
from service.repositories import datasets as repository
from service.repositories.pagination import page
from service.usecases import datasets as usecases
from service.usecases.datasets import read_upload, redeclared_data_set
from service.web.filters import cell, cut, number
from service.web.forms import labels_named, lines_of, moved, text_of_lines, whole_number
from service.web.pages import cursor, may_open, pages, problem_of, render, see_other

SHOWN = 50
COLUMNS_A_PAGE = 100
MAX_LISTED_CATEGORIES = 60
MAX_LISTED_CHARS = 4_000
MAX_LINES = 8  # of a text field
MAX_TARGETS = 300  # columns in the menu of the target
LISTED_TARGETS = f"The first {MAX_TARGETS} columns are listed."
SUMMARIZED = 4  # categories in a summary
NOTHING = ""  # the choice "none" of a menu
ROWS_SHOWN = 10
MAX_NOTICES = 100
STALE = "the declaration has changed since this page was opened; nothing was changed now: here it is, change it again"
CODED = ("nominal", "ordinal", "boolean")
ENDINGS = ", ".join(ending for known in espalier.FORMATS.values() for ending in known.endings)


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of the declaration, with the values that were typed into its fields."""

    place: int
    name: str
    kind: str
    role: str
    is_target: bool
    summary: str  # the number of categories, and the first ones
    order: str | None  # text of the field for the categories, one per line; None: too many, or one is not a line
    n_lines: int  # height of the field
    is_number: bool  # whether it has numbers or dates, and no categories were typed


@pages.page("/datasets", Scope.READ, Scope.TRAIN)
def data_sets() -> Response:
    """Show the form for an upload and, for a caller who may read, the list of data sets, newest first."""
    return _list_page()


@pages.page("/datasets", Scope.TRAIN, methods=("POST",))
def upload() -> Response:
    """Store an uploaded file as a data set; a caller who may not read it goes on to the form for a training."""
    try:
        data_set_id = _stored()
    except (espalier.EspalierError, ServiceError) as error:
        return _list_page(problem_of(error))
    if may_open("data_set"):
        return see_other("data_set", data_set_id=data_set_id)
    return see_other("train", dataset=data_set_id)


@pages.page("/datasets/<id:data_set_id>", Scope.READ)
def data_set(data_set_id: str) -> Response:
    """Show the declaration of a data set, with the form to change it."""
    return _declaration_page(data_set_id)


@pages.page("/datasets/<id:data_set_id>", Scope.TRAIN, methods=("POST",))
def declare(data_set_id: str) -> Response:
    """Change the declaration of a data set."""
    service = current_service()
    with read_session(service.sessions) as session:
        row = repository.find_data_set(session, data_set_id)
    shown = request.form.get("fingerprint", row.fingerprint)
    if shown != row.fingerprint:
        return _declaration_page(data_set_id, problem_of(PreconditionFailed(STALE), "data_set"), typed={})
    schema = espalier.Schema.from_dict(row.declared)
    changes: dict[str, Any] = {}
    try:
        changes = _changes(schema, request.form)
        if changes:
            redeclared = redeclared_data_set(service.sessions, data_set_id, changes, settings=service.settings)
            with redeclared as (new, _), transaction(service.sessions) as session:
                usecases.redeclare_data_set(session, data_set_id, new=new, was=shown)
    except (espalier.EspalierError, ServiceError) as error:
        places = {
            f"/columns/{number}": f"/columns/{schema.place(column['name'])}"
            for number, column in enumerate(changes.get("columns", ()))
        }
        return _declaration_page(data_set_id, moved(problem_of(error, "data_set"), places))
    return see_other("data_set", data_set_id=data_set_id, page=_page_number())


@pages.page("/datasets/<id:data_set_id>/delete", Scope.TRAIN, methods=("POST",))
def delete_data_set(data_set_id: str) -> Response:
    """Delete a data set that nothing uses."""
    try:
        with transaction(current_service().sessions) as session:
            usecases.delete_data_set(session, data_set_id)
    except ServiceError as error:
        return _declaration_page(data_set_id, problem_of(error, "data_set"))
    return see_other("data_sets")


def _stored() -> str:
    """Store the file of the form; return the id of the data set."""
    typed, file = request.form, request.files.get("file")
    if file is None or not file.filename:
        raise ValidationFailed.of("/file", "required", f"choose a file: {ENDINGS}, optionally with .gz")
    name = typed.get("name", "").strip() or file.filename[:200]
    repository.check_data_set_name(name)
    stream, form = open_file(file)
    declared = {
        "target": typed.get("target", "").strip() or None,
        "task": typed.get("task") or None,
        "weight": typed.get("weight", "").strip() or None,
        "ignore": lines_of(typed.get("ignore", "").replace(",", "\n")),
        "missing_values": lines_of(typed.get("missing_values", "").replace(",", "\n")) or None,
        "schema": None,
    }
    service = current_service()
    with (
        read_upload(stream, form, settings=service.settings, declared=declared) as new,
        transaction(service.sessions) as session,
    ):
        return repository.add_data_set(session, name=name, new=new).id


def _list_page(problem: Any = None) -> Response:
    with read_session(current_service().sessions) as session:
        data_sets = page(session, DataSet, options=repository.WITHOUT_DECLARATION, limit=SHOWN, cursor=cursor())
    return render(
        "data_sets.html",
        data_sets=data_sets,
        typed=request.form,
        problem=problem,
        endings=ENDINGS,
    )


def _declaration_page(data_set_id: str, problem: Any = None, *, typed: Mapping[str, str] | None = None) -> Response:
    """Show a declaration with the `typed` values, by default those of the request."""
    with read_session(current_service().sessions) as session:
        row = repository.find_data_set(session, data_set_id)
        schema = espalier.Schema.from_dict(row.declared)
        rows = repository.load_rows(session, data_set_id, stop=ROWS_SHOWN)
    typed = request.form if typed is None else typed
    first = (_page_number() - 1) * COLUMNS_A_PAGE
    target = typed.get("target", _target_place(schema))
    if not _is_choice(target, schema):
        target = _target_place(schema)
    places = range(len(schema.features))[first : first + COLUMNS_A_PAGE]
    columns = [_shown_column(place, schema, typed, is_target=target == str(place)) for place in places]
    names = [column.name for column in columns]
    return render(
        "data_set.html",
        row=row,
        schema=schema,
        columns=columns,
        target=target,
        targets=_target_choices(schema, target),
        target_hint="The column to predict." + (f" {LISTED_TARGETS}" if len(schema.features) > MAX_TARGETS else ""),
        missing_values=typed.get("missing_values", text_of_lines(schema.missing_values)),
        task=typed.get("task", ""),
        rows=[[one[name] for name in names] for one in rows],
        page=_page_number(),
        n_pages=-(-len(schema.features) // COLUMNS_A_PAGE),
        typed=typed,
        problem=problem,
        notices=row.notices[:MAX_NOTICES],
    )


def _target_choices(schema: espalier.Schema, target: str) -> list[tuple[str, str]]:
    """Return the columns that the menu of targets offers: the first `MAX_TARGETS`, and the chosen column."""
    features = schema.features
    choices = [(str(place), cut(one.name, 60)) for place, one in enumerate(features[:MAX_TARGETS])]
    if target != NOTHING and int(target) >= MAX_TARGETS:
        choices.append((target, cut(features[int(target)].name, 60)))
    return choices


def _shown_column(place: int, schema: espalier.Schema, typed: Mapping[str, str], *, is_target: bool) -> ShownColumn:
    feature = schema.features[place]
    texts = [espalier.label_text(label) for label in feature.categories]
    is_short = len(texts) <= MAX_LISTED_CATEGORIES and sum(map(len, texts)) <= MAX_LISTED_CHARS
    kind, role = typed.get(f"kind-{place}", str(feature.kind)), typed.get(f"role-{place}", str(feature.role))
    order = typed.get(f"order-{place}", text_of_lines(texts)) if is_short else None
    is_number = order == "" and not feature.coded and kind != espalier.FeatureKind.ORDINAL
    return ShownColumn(
        place=place,
        name=feature.name,
        kind=kind,
        role=role,
        is_target=is_target and role == espalier.Role.TARGET,
        summary="numbers" if is_number else _categories_summary(feature.categories, is_short=is_short),
        order=order,
        n_lines=3 if is_number else min(len(texts) + 1, MAX_LINES),
        is_number=is_number,
    )


def _categories_summary(categories: Sequence[espalier.Label], *, is_short: bool) -> str:
    first = ", ".join(map(cell, categories[:SUMMARIZED]))
    if not is_short:
        return f"{number(len(categories))} categories: {cut(first, 120)}, …"
    if not categories:
        return "set categories"
    return f"{len(categories)}: {cut(first, 60)}" + (", …" if len(categories) > SUMMARIZED else "")


def _changes(schema: espalier.Schema, typed: Mapping[str, str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    target = typed.get("target", _target_place(schema))
    if not _is_choice(target, schema):
        raise ValidationFailed.of("/target", "unknown_value", "must be one of the columns, or none")
    if target != _target_place(schema):
        changes["target"] = None if target == NOTHING else schema.features[int(target)].name
    if typed.get("task"):
        changes["task"] = typed["task"]
    shown = text_of_lines(schema.missing_values)
    tokens = labels_named(typed.get("missing_values", shown or ""), schema.missing_values)
    if shown is not None and tokens != list(schema.missing_values):
        changes["missing_values"] = tokens
    columns = [_column_change(place, feature, typed) for place, feature in enumerate(schema.features)]
    if given := [column for column in columns if len(column) > 1]:
        changes["columns"] = given
    return changes


def _column_change(place: int, feature: espalier.Feature, typed: Mapping[str, str]) -> dict[str, Any]:
    change: dict[str, Any] = {"name": feature.name}
    kind, role = typed.get(f"kind-{place}", feature.kind), typed.get(f"role-{place}", feature.role)
    if kind != feature.kind:
        change["kind"] = kind
    if role not in (feature.role, espalier.Role.TARGET):
        change["role"] = role
    order = labels_named(typed.get(f"order-{place}", ""), feature.categories)
    is_other = [*map(espalier.label_text, order)] != [*map(espalier.label_text, feature.categories)]
    is_new_order = is_other or (kind == "ordinal" and feature.kind != "ordinal")
    if order and kind in CODED and is_new_order:
        change["categories"] = order
    return change


def _target_place(schema: espalier.Schema) -> str:
    return NOTHING if schema.target is None else str(schema.place(schema.target.name))


def _is_choice(target: str, schema: espalier.Schema) -> bool:
    place = whole_number(target)
    return target == NOTHING or (place is not None and place < len(schema.features))


def _page_number() -> int:
    return whole_number(request.args.get("page", "")) or 1
