"""Try a model: a form with a field per attribute, the answer with its path, and a consultation by questions."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from flask import Response, request

import espalier
from service.api.context import current_caller, current_service
from service.database.tables import Scope
from service.errors import NotFound, PreconditionFailed, ServiceError, ValidationFailed
from service.repositories.decisions import check_subject
from service.repositories.model_cache import n_nodes_of
from service.usecases.decisions import consult
from service.usecases.predictions import PredictionOptions, answer_rows, check_cells
from service.usecases.version_resolver import ResolvedVersion
from service.web.filters import counted, largest_shares
from service.web.forms import label_named, whole_number
from service.web.models import MODEL
from service.web.pages import can, pages, problem_of, render
from service.web.tree_pictures import is_tree, picture

MAX_OPTIONS = 200
MAX_OPTION_CHARS = 10_000  # of one menu
MAX_FIELDS = 300
MAX_NODES_EXPLAINED = 3_000  # with more nodes, Shapley values and reasons take too long for a page
MAX_SHARES = 12
MAX_CONTRIBUTIONS = 30
STALE = "version {} answers since this page was opened, so nothing was decided: type the row into its fields again"


@dataclass(frozen=True, slots=True)
class Cell:
    """A field for the value of an attribute; `options` holds pairs of value and text, or is empty for a text field."""

    place: int
    name: str
    kind: str
    options: tuple[tuple[str, str], ...]
    value: str
    hint: str


@pages.page(f"{MODEL}/try", Scope.PREDICT)
def try_model(name: str) -> Response:
    """Show the form for the version that the query names, else for the version that answers by default."""
    return _try_page(_resolved(name, request.args), {})


@pages.page(f"{MODEL}/try", Scope.PREDICT, methods=("POST",))
def answer(name: str) -> Response:
    """Predict the row of the form, log the decision and show the answer."""
    service, typed = current_service(), request.form
    recorder = service.recorder.begin(current_caller().key_id)
    resolved = _resolved(name, typed)
    model, number = resolved.version.model, resolved.version.number
    if whole_number(typed.get("shown", "")) not in (None, number):  # its fields may belong to other attributes
        problem = problem_of(PreconditionFailed(STALE.format(number)))
        return _try_page(resolved, {"subject": typed.get("subject", "")}, problem=problem)
    row = typed_row(model, typed)
    most_explained = min(MAX_NODES_EXPLAINED, service.settings.max_full_nodes)
    options = PredictionOptions(
        explain="full" if n_nodes_of(model) <= most_explained else "path",
        subject=typed.get("subject", "").strip() or None,
    )
    try:
        check_subject(options.subject)
        [answer] = answer_rows(resolved, [row], options, recorder=recorder, pointer=lambda _, path: f"/row{path}")
    except (espalier.EspalierError, ServiceError) as error:
        return _try_page(resolved, typed, problem=problem_of(error))
    drawn = picture(model, path=row) if is_tree(model) and can(Scope.READ) else None
    return _try_page(
        resolved,
        typed,
        answer=answer,
        picture=drawn,
        has_nearest_change=bool(model.schema.classes) and not resolved.settings.masked(resolved.version.attributes),
        shares=largest_shares(answer.get("distribution", {}).items(), most=MAX_SHARES),
        contributions=_contributions(answer),
    )


@pages.page(f"{MODEL}/consultation", Scope.PREDICT)
def consultation(name: str) -> Response:
    """Begin a consultation, which asks one question at a time until the answer is certain."""
    return _consultation_page(_resolved(name, request.args), {})


@pages.page(f"{MODEL}/consultation", Scope.PREDICT, methods=("POST",))
def reply(name: str) -> Response:
    """Add a reply or remove the last reply, and ask the next question."""
    typed = request.form
    resolved = _resolved(name, typed)
    attributes = resolved.version.model.schema.attributes
    known = _known(typed.get("known", "{}"), names={feature.name for feature in attributes})
    place = whole_number(typed.get("place", ""))
    if "back" in typed and known:
        known.popitem()
    elif place is not None and place < len(attributes):
        feature = attributes[place]
        return _consultation_page(resolved, known, {feature.name: typed_cell(feature, typed.get(f"v-{place}", ""))})
    return _consultation_page(resolved, known)


def typed_row(model: espalier.Model, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the row that a form describes; an empty field is a missing value."""
    cells = (
        (feature.name, typed_cell(feature, typed.get(f"v-{place}", "")))
        for place, feature in enumerate(model.schema.attributes)
    )
    return {name: value for name, value in cells if value is not None}


def typed_cell(feature: espalier.Feature, text: str) -> Any:
    """Return the value of a field; None if it is empty.

    In the field of a number or date, null is a missing value, too: the faults of these fields say so. Dates, unknown
    categories and, in numeric fields, texts that are not numbers stay texts; the prediction checks them.
    """
    if not text.strip():
        return None
    if feature.coded:
        if _is_menu(feature) and (code := whole_number(text)) is not None and code < len(feature.categories):
            return feature.categories[code]
        return label_named(text, feature.categories)
    text = text.strip()
    if text == "null":
        return None
    if feature.kind == espalier.FeatureKind.DATETIME:
        return text
    number = espalier.number_from_text(text)
    return text if number is None else number


def cell_of(place: int, feature: espalier.Feature, value: str, *, hint: str = "") -> Cell:
    """Return the field of an attribute."""
    options: tuple[tuple[str, str], ...] = ()
    if feature.coded and _is_menu(feature):
        options = tuple((str(code), espalier.label_text(label)) for code, label in enumerate(feature.categories))
    elif feature.coded:
        hint = f"one of {len(feature.categories)} categories, spelled as in the data"
    elif feature.kind == espalier.FeatureKind.DATETIME:
        hint = "a date or time in ISO 8601"
    return Cell(place, feature.name, str(feature.kind), options, value, hint)


def _is_menu(feature: espalier.Feature) -> bool:
    labels = feature.categories
    return len(labels) <= MAX_OPTIONS and sum(len(espalier.label_text(label)) for label in labels) <= MAX_OPTION_CHARS


def _resolved(name: str, typed: Mapping[str, str]) -> ResolvedVersion:
    text = typed.get("version", "").strip()
    number = whole_number(text)
    if text and number is None:
        raise NotFound("version", f"{name}/{text}")
    return current_service().versions.resolve(name, number)


def _try_page(resolved: ResolvedVersion, typed: Mapping[str, str], **values: Any) -> Response:
    model = resolved.version.model
    tested = set(model.tree.tested()) if is_tree(model) else set(range(len(model.schema.attributes)))
    places = sorted(range(len(model.schema.attributes)), key=lambda place: place not in tested)
    scales = model.preparation.scales or (None,) * len(places)
    cells = [
        cell_of(place, model.schema.attributes[place], typed.get(f"v-{place}", ""), hint=_range(scales[place]))
        for place in places[:MAX_FIELDS]
    ]
    return render(
        "try.html",
        name=resolved.version.model_name,
        number=resolved.version.number,
        alias=resolved.alias,
        is_weighted=model.schema.weight is not None,
        fixed=typed.get("version") or request.args.get("version", ""),
        cells=[cell for cell in cells if cell.place in tested],
        others=[cell for cell in cells if cell.place not in tested],
        n_left_out=max(0, len(places) - MAX_FIELDS),
        typed=typed,
        **({"answer": None, "problem": None} | values),
    )


def _range(scale: Any) -> str:
    if scale is None:
        return ""
    low, high = scale.middle - scale.span / 2, scale.middle + scale.span / 2
    return f"trained on about {low:.4g} to {high:.4g}"


def _contributions(answer: Mapping[str, Any]) -> list[tuple[str, float | None, float | None]]:
    """Return the name, contribution (None: not on the path) and Shapley value of attributes, the largest first.

    After `MAX_CONTRIBUTIONS` attributes, one entry has the number of the others and the sums of their values.
    """
    path = answer.get("contributions") or {}
    shapley_values = (answer.get("shap") or {}).get("contributions", {})
    sizes = {name: max(abs(path.get(name, 0)), abs(shapley_values.get(name, 0))) for name in {**path, **shapley_values}}
    names = sorted(sizes, key=lambda name: -sizes[name])
    listed, others = names[:MAX_CONTRIBUTIONS], names[MAX_CONTRIBUTIONS:]
    entries = [(name, path.get(name), shapley_values.get(name)) for name in listed]
    sums = [math.fsum(values.get(name, 0) for name in others) for values in (path, shapley_values)]
    return [*entries, *([(counted(len(others), "other attribute"), sums[0], sums[1])] if others else [])]


def _known(text: str, *, names: Collection[str]) -> dict[str, Any]:
    """Return the replies of a consultation, by attribute name; all these names must be in `names`."""
    try:
        known = orjson.loads(text)
    except orjson.JSONDecodeError:
        known = None
    if not isinstance(known, dict) or not all(name in names for name in known):
        raise ValidationFailed.of("/known", "wrong_type", "the dialogue was damaged: begin it again")
    return known


def _consultation_page(
    resolved: ResolvedVersion, known: Mapping[str, Any], reply: Mapping[str, Any] | None = None
) -> Response:
    version, problem = resolved.version, None
    with_reply = {**known, **(reply or {})}
    try:
        check_cells([with_reply], limit=current_service().settings.max_cell_chars)
        consultation = consult(version, with_reply, missing=None)
        known = with_reply
    except (espalier.EspalierError, ServiceError) as error:
        if reply is None:
            raise
        problem = problem_of(error)
        consultation = consult(version, known, missing=None)
    attributes = version.model.schema.attributes
    places = {feature.name: place for place, feature in enumerate(attributes)}
    question = consultation.question
    cell = None
    if question is not None:
        place = places[question.attribute.name]
        cell = cell_of(place, question.attribute, "" if problem is None else request.form.get(f"v-{place}", ""))
    answers = [
        (name, value, places[name], _typed_again(attributes[places[name]], value)) for name, value in known.items()
    ]
    return render(
        "consultation.html",
        name=version.model_name,
        number=version.number,
        fixed=request.form.get("fixed") or request.args.get("version", ""),
        is_weighted=version.model.schema.weight is not None,
        consultation=consultation,
        cell=cell,
        known_json=orjson.dumps(dict(known)).decode(),
        answers=answers,
        problem=problem,
    )


def _typed_again(feature: espalier.Feature, value: Any) -> str:
    """Return the text that the HTML form sends for a value; for a menu, the number of the option."""
    if value is None:
        return ""
    if feature.coded and _is_menu(feature) and value in feature.categories:
        return str(feature.categories.index(value))
    return espalier.label_text(value)
