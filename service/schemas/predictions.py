"""Predictions and consultations: options, responses, and the JSON Schema of a row."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import marshmallow as ma

import espalier
from espalier import Fault
from service.database import ALIAS, ALIAS_RULE
from service.schemas import fields, problems
from service.schemas.datasets import rows_or_columns
from service.serialization.media_types import CSV, NDJSON
from service.usecases.predictions import PredictionOptions

ALIAS_MEANING: Final = "alias of the version that predicts; default: `production`, else the newest that is not archived"


class Step(fields.BaseSchema):
    node = fields.Integer()
    attribute = fields.Text()
    test = fields.Text("`<=` compares with a threshold, `in` with a set of categories, `known` tests for a value")
    set = fields.ListOf(fields.Label("a category"), "categories of the chosen branch (`in`)")
    n_more = fields.Integer("number of unlisted categories: `path` lists at most 100, `full` all")
    threshold = fields.Label("the threshold (`<=`): a number, a date, or a category of an ordinal attribute")
    value = fields.Label("the value in the row; null: missing, or a category that is not in the schema")
    branch = fields.Text("whether the test holds: yes or no; always yes for `in`")
    reason = fields.Text("why the branch was chosen without a value: missing or unseen")
    surrogate = fields.AnyObject("the test that replaced this one: attribute, test, value, branch")
    imputed = fields.Label("the value that replaced a missing or unseen one (strategy `imputed`)")
    margin = fields.Number("distance of the value from the threshold")
    weight = fields.Number("training weight at the node")
    distribution = fields.Json("share of each class at the node (classification)", schema=fields.SHARES)
    mean = fields.Number("mean at the node (regression)")


class Condition(fields.BaseSchema):
    """All tests of one attribute on a path, merged."""

    attribute = fields.Text()
    above = fields.Label("the value is greater than this")
    at_most = fields.Label("the value is at most this")
    categories = fields.ListOf(fields.Label("a category"), "the value is one of these", data_key="in")
    n_more = fields.Integer("number of unlisted categories: `path` lists at most 100, `full` all")
    known = fields.Boolean("whether the value is known")
    text = fields.Text("the condition as a sentence")


class Flags(fields.BaseSchema):
    missing = fields.ListOf(fields.Text(), "attributes without a value")
    unseen = fields.ListOf(fields.Text(), "attributes with a category that does not occur in the training data")


class WeightedPath(fields.BaseSchema):
    """One path of a row that takes several branches at a missing value; `weight` is the row's fraction on this path."""

    weight = fields.Number()
    leaf = fields.Integer()
    path = fields.ListOf(fields.Nested(Step))


class Answer(fields.BaseSchema):
    """The prediction for one row, without its path."""

    label = fields.Label("the class (classification)")
    distribution = fields.Json("share of each class (classification)", schema=fields.SHARES)
    confidence = fields.Number("Wilson's lower bound (z = 1.96) of the share of the label (classification)")
    value = fields.Number("the number (regression)")
    std = fields.Number("standard deviation of the target at the leaf in training (regression)")
    support = fields.Number("training weight at the leaf")
    leaf = fields.Integer("number of the node or rule that predicts; if several do, the one with the largest share")
    flags = fields.Nested(Flags)
    errors = fields.ListOf(fields.Nested(problems.Fault), "why the row was refused; there is no prediction then")


class Explained(Answer):
    """The prediction for one row with its path."""

    path = fields.ListOf(fields.Nested(Step), "every test from the root to `leaf`")
    paths = fields.ListOf(
        fields.Nested(WeightedPath), "the paths of a row with missing values, at most the 100 with the largest share"
    )
    n_paths = fields.Integer("number of paths, if there are several")
    conditions = fields.ListOf(fields.Nested(Condition), "the path merged into one condition per attribute")
    nodes = fields.ListOf(
        fields.Integer(), "numbers of the nodes, instead of the path if the values are no longer stored"
    )
    rule = fields.Text("the path as a sentence")
    baseline = fields.Number(
        "at the root: the share of the label, or the mean (full). Of a linear model: its intercept"
    )
    contributions = fields.Json("what each attribute adds to the baseline along the path (full)", schema=fields.SHARES)
    shap = fields.AnyObject("Shapley values: `baseline` plus `contributions` is the label's share or the number (full)")
    reasons = fields.ListOf(
        fields.AnyObject("`attributes` with their values, whether all are needed (`minimal`), and the `text`"),
        "sets of attributes whose values alone determine the prediction (full)",
    )
    cost = fields.AnyObject("`total`, and `attributes` with the cost of each tested attribute, counted once (full)")
    linear = fields.AnyObject("the linear model that predicts: intercept, terms, smoothing (model trees)")
    passed_over = fields.ListOf(
        fields.AnyObject("a rule, and the first of its conditions that does not hold"),
        "the rules before the one that predicts (full, lists of rules)",
    )


class Prediction(Explained):
    """The prediction for one row, logged as a decision."""

    decision_id = fields.Text("id of the decision; null if decisions are not logged", allow_none=True)


class PredictionAnswer(fields.OfVersion):
    operating_point = fields.OPERATING_POINT
    audited = fields.Boolean("false: the decisions may be logged after the response, or never")
    predictions = fields.ListOf(fields.Nested(Prediction))


class PredictionOptionsSchema(fields.BaseSchema):
    explain = fields.choice(
        ("none", "path", "full"),
        "none: the prediction alone; path: also the tests on its path; full: also contributions, Shapley values, "
        "reasons and costs",
        default="path",
    )
    missing = fields.choice(
        (*espalier.PREDICTION_STRATEGIES, None),
        "how a test handles a missing value; null: as in training. "
        + "; ".join(f"{name}: {meaning}" for name, meaning in espalier.PREDICTION_STRATEGIES.items()),
        default=None,
    )
    on_error = fields.choice(
        ("fail", "skip"),
        "fail: an invalid row refuses the request; skip: the valid rows are predicted, invalid rows have `errors` "
        "instead of a prediction",
        default="fail",
    )
    subject = fields.Text(
        load_default=None,
        error_messages={"invalid": fields.coded("wrong_type", "must be text or null")},
        schema=fields.SUBJECT,
    )


OPTIONS: Final = PredictionOptionsSchema()
OPTION_NAMES: Final = frozenset(OPTIONS.fields)
DEFAULT_OPTIONS: Final = PredictionOptions()
MAX_UNKNOWN: Final = 1_000  # names of unknown fields that are reported


def read_options(given: Mapping[str, Any], *, beside: Collection[str], faults: list[Fault]) -> PredictionOptions:
    """Return the prediction options of a JSON body or of a query; if an option is invalid, return the default options.

    The names in `beside` are legal, too, but are not read. Faults are appended to `faults`, illegal names first.
    """
    if unknown := given.keys() - OPTION_NAMES - set(beside):
        message = f"there is no such field; legal: {', '.join(sorted({*OPTION_NAMES, *beside}))}"
        faults += fields.faults_of(dict.fromkeys(sorted(unknown)[:MAX_UNKNOWN], fields.coded("unknown_field", message)))
    if OPTION_NAMES.isdisjoint(given):
        return DEFAULT_OPTIONS
    try:
        read = OPTIONS.load({name: given[name] for name in OPTIONS.fields if name in given})
    except ma.ValidationError as error:
        faults += fields.faults_of(error.messages)
        return DEFAULT_OPTIONS
    return PredictionOptions(read["explain"], read["missing"], read["on_error"] == "skip", read["subject"])


def _in_query(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "enum" in schema:
        return {"type": "string", "enum": [word for word in schema["enum"] if word is not None]}
    return {"type": "string", "pattern": schema["pattern"]}


STREAM_PARAMETERS: Final = [
    fields.parameter("query", name, _in_query(field.metadata), f"`{name}` of a CSV or NDJSON request")
    for name, field in OPTIONS.fields.items()
]
"""OpenAPI parameters for the prediction options of a CSV or NDJSON request, which are in its query."""

ALIAS_PARAMETER: Final = fields.parameter("query", "alias", {"type": "string", "pattern": f"^{ALIAS}$"}, ALIAS_MEANING)

PREDICTION_REQUEST: Final = rows_or_columns(
    "prediction",  # generated clients derive names from it
    {name: field.metadata for name, field in OPTIONS.fields.items()},
    {"rows": [{"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak"}], "explain": "path"},
)

PREDICTION_STREAMS: Final[Mapping[str, Any]] = {
    CSV: {
        "type": "string",
        "description": "a header line with the attributes in any order, then a line per row; the response is CSV",
        "examples": ["Outlook,Humidity,Wind\nSunny,High,Weak\nRain,High,\n"],
    },
    NDJSON: {
        "type": "string",
        "description": "a line per row: an object of attribute names and values; the response is NDJSON",
        "examples": ['{"Outlook":"Sunny","Humidity":"High"}\n{"Outlook":"Rain","Wind":null}\n'],
    },
}


class VersionQuery(fields.BaseSchema):
    alias = fields.matching(ALIAS, ALIAS_MEANING, error=fields.coded("invalid", ALIAS_RULE), load_default=None)


class ConsultationRequest(fields.BaseSchema):
    known = fields.Json(
        "values by attribute; null: the value cannot be obtained; absent: not asked yet",
        schema=fields.ROW,
        load_default=dict,
    )
    missing = fields.MISSING_STRATEGY


class Question(fields.BaseSchema):
    attribute = fields.Text("name of the attribute")
    kind = fields.Text("kind of its values")
    categories = fields.ListOf(fields.Label("a category"), "categories in the training data")
    cost = fields.Number("cost of finding out the value")
    node = fields.Integer("number of the node or rule that tests the attribute")


class Possible(fields.BaseSchema):
    label = fields.Label("the class")
    weight = fields.Number("training weight of the reachable leaves with this class")


class Consultation(fields.OfVersion):
    settled = fields.Boolean("whether the prediction is the same for all possible unknown values")
    next = fields.Nested(Question, "the attribute to find out next; absent once the prediction is settled")
    possible = fields.ListOf(fields.Nested(Possible), "the classes of the leaves still reachable (classification)")
    range = fields.ListOf(
        fields.Number(), "smallest and largest possible number (regression; with linear leaves only beside `answer`)"
    )
    label = fields.Label("the class, once it is settled (classification)")
    value = fields.Number("the number, once it is settled (regression)")
    answer = fields.Nested(Answer, "the whole prediction, once nothing is left to ask")
    cost = fields.AnyObject("`total`, and `attributes` with the cost of each tested attribute, counted once")


TYPES: Mapping[type, str] = {bool: "boolean", int: "number", float: "number", str: "string"}
UNREAD: Mapping[espalier.Role, str] = {
    espalier.Role.TARGET: "the target; a value is ignored",
    espalier.Role.WEIGHT: "the weight in training; a value is ignored",
    espalier.Role.IGNORE: "ignored in training; a value is ignored",
}


def row_schema(schema: espalier.Schema, *, title: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a row for a version with this schema."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": "one row: attribute names and values; null or absent is missing",
        "type": "object",
        "properties": {
            feature.name: {"description": UNREAD[feature.role]}
            if feature.role in UNREAD
            else _cell(feature, schema.missing_values)
            for feature in schema.features
        },
        "additionalProperties": False,
    }


def _cell(attribute: espalier.Feature, missing_values: Sequence[str]) -> dict[str, Any]:
    cell: dict[str, Any] = {"description": str(attribute.kind)}
    types = _types(attribute)
    if "string" in types or not missing_values:
        cell["type"] = [*types, "null"]
        cell |= {"pattern": fields.WITHOUT_NUL} if "string" in types else {}
    else:
        cell["anyOf"] = [{"type": [*types, "null"]}, {"enum": list(missing_values)}]
    if attribute.kind == espalier.FeatureKind.DATETIME:
        cell["description"] = "datetime: a date or time in ISO 8601; without a time zone it is UTC"
    elif attribute.coded:
        cell["description"] = f"{attribute.kind}: one of the examples; other values do not occur in the training data"
        cell["examples"] = list(attribute.categories)
    return cell


def _types(attribute: espalier.Feature) -> list[str]:
    if attribute.kind == espalier.FeatureKind.DATETIME:
        return ["string"]
    if not attribute.coded:
        return ["number"]
    # A column that was empty in training accepts any type.
    return sorted({TYPES[type(label)] for label in attribute.categories} or {*TYPES.values()})
