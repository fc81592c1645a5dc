"""Predictions and consultations: options, answers, and the JSON Schema of a row."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import marshmallow as ma
from marshmallow import fields

import espalier
from espalier import Fault
from service.database import ALIAS
from service.schemas import problems
from service.schemas.datasets import rows_or_columns
from service.schemas.fields import (
    LABEL,
    OBJECT,
    POINT,
    PRINTABLE,
    SHARES,
    WITHOUT_NUL,
    BaseSchema,
    Choice,
    boolean,
    coded,
    faults_of,
    integer,
    json_value,
    list_of,
    matching,
    one_of,
    real,
    text,
)
from service.usecases.predictions import PredictionOptions


class Step(BaseSchema):
    """One test on the path to a leaf."""

    node = fields.Integer()
    attribute = fields.String()
    test = text("`<=` against a threshold, `in` a set of categories, or `known`")
    set = list_of(json_value("a category", LABEL), "of an `in` test: the branch that was taken")
    threshold = json_value("of a `<=` test: a number, a category of an ordinal attribute, or a date", LABEL)
    value = json_value("the row's own value; null: missing", LABEL)
    branch = text("whether the test held: yes or no")
    reason = text("why the branch was taken without a value: missing or unseen")
    surrogate = json_value("the test that decided where the value could not: attribute, test, value, branch", OBJECT)
    imputed = json_value("the value that stood in for one that is missing or unseen, where the training said so", LABEL)
    margin = real("distance of the value from the threshold")
    weight = real("training weight at the node")
    distribution = json_value("share of each class at the node (classification)", SHARES)
    mean = real("mean at the node (regression)")


class Condition(BaseSchema):
    """All tests of one attribute on a path, merged."""

    attribute = fields.String()
    above = json_value("the value is greater than this", LABEL)
    at_most = json_value("the value is at most this", LABEL)
    categories = list_of(json_value("a category", LABEL), "it is one of these", data_key="in")
    known = boolean("the value is known, or missing")
    text = text("the same as a sentence")


class Flags(BaseSchema):
    """What was not as in training."""

    missing = list_of(fields.String(), "attributes without a value")
    unseen = list_of(fields.String(), "attributes with a category never seen in training")


class Way(BaseSchema):
    """One of several ways that a row with a missing value goes, with its share."""

    weight = fields.Float()
    leaf = fields.Integer()
    path = fields.List(fields.Nested(Step))


class Answer(BaseSchema):
    """The answer for one row, without what led to it."""

    label = json_value("the class (classification)", LABEL)
    distribution = json_value("share of each class (classification)", SHARES)
    confidence = real("Wilson's lower bound of the label's share (classification)")
    value = real("the number (regression)")
    std = real("standard deviation of the training rows at the leaf (regression)")
    support = real("training weight at the leaf")
    leaf = integer("number of the node, or of the rule, that answers")
    flags = fields.Nested(Flags)
    errors = list_of(fields.Nested(problems.Fault), "why the row was refused; then there is no answer")


class Explained(Answer):
    """The answer for one row with what led to it."""

    path = list_of(fields.Nested(Step), "every test from the root to the leaf")
    paths = list_of(fields.Nested(Way), "where missing values lead several ways: the 100 heaviest of them")
    n_paths = integer("how many ways there are, where there are several")
    conditions = list_of(fields.Nested(Condition), "the path merged, one condition an attribute")
    nodes = list_of(fields.Integer(), "in the place of the path where values are not there any more")
    rule = text("the path as a sentence")
    baseline = real("the label's share, or the mean, at the root (full)")
    contributions = json_value("what each attribute added to it on the way (full)", SHARES)
    shap = json_value("the same by Shapley: `baseline` and `contributions` add up to the answer (full)", OBJECT)
    reasons = list_of(
        json_value("`attributes` with their values, whether all are needed (`minimal`), and the `text`", OBJECT),
        "attributes whose values alone force the answer, whatever the others are (full)",
    )
    cost = json_value("`total` and cost by attribute of those that were looked at, each paid once (full)", OBJECT)
    linear = json_value("the linear model that answers: intercept, terms, smoothing (model trees)", OBJECT)
    passed_over = list_of(
        json_value("a rule, and the condition that does not hold", OBJECT),
        "the rules before the one that answers (full, lists of rules)",
    )


class Prediction(Explained):
    """The answer for one row, logged."""

    decision_id = text("where the decision can be looked up; null where none is logged", allow_none=True)


class PredictionAnswer(BaseSchema):
    """The answers for all rows of a request."""

    model = fields.String()
    version = fields.Integer()
    operating_point = json_value("from which probability on the label is given; null: the most probable one is", POINT)
    audited = boolean("false where answers do not wait until they are logged")
    predictions = fields.List(fields.Nested(Prediction))


STRATEGIES: Final = espalier.PREDICTION_STRATEGIES


NO_TEXT: Any = coded("wrong_type", "must be text or null")


class Subject(fields.Field[str]):
    """Text or null; the code that stores it checks its characters."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> str:
        if not isinstance(value, str):
            raise ma.ValidationError(NO_TEXT)
        return value


class PredictionOptionsSchema(BaseSchema):
    """How rows are answered."""

    explain = Choice(
        ("none", "path", "full"),
        load_default="path",
        metadata={
            "type": "string",
            "enum": ["none", "path", "full"],
            "description": "none: the answer; path: with the tests that led to it; full: with all that is known of it",
        },
    )
    missing = Choice(
        (*STRATEGIES, None),
        load_default=None,
        metadata={
            "enum": [*STRATEGIES, None],
            "description": "what is done with a row at a test whose value it does not have; null: as in training. "
            + "; ".join(f"{name}: {what}" for name, what in STRATEGIES.items()),
        },
    )
    on_error = Choice(
        ("fail", "skip"),
        load_default="fail",
        metadata={
            "type": "string",
            "enum": ["fail", "skip"],
            "description": "fail: rows that cannot be read refuse the request; skip: the others are answered, these "
            "have `errors` in the place of an answer",
        },
    )
    subject = Subject(
        load_default=None,
        allow_none=True,
        metadata={
            "type": ["string", "null"],
            "pattern": f"^{PRINTABLE}{{1,200}}$",
            "description": "whom the decision is about; decisions can be listed by it",
        },
    )


OPTIONS: Final = PredictionOptionsSchema()


OPTION_NAMES: Final = frozenset(OPTIONS.fields)


DEFAULT_OPTIONS: Final = PredictionOptions()


def read_options(given: Mapping[str, Any], *, beside: Collection[str], faults: list[Fault]) -> PredictionOptions:
    """Return the prediction options of a JSON body or of a query; of faulty ones the default.

    Args:
        given: The body, or the query.
        beside: The other names that are legal in it, such as ``rows``.
        faults: Those found are added: names that are not legal first.
    """
    if unknown := given.keys() - OPTION_NAMES - set(beside):
        legal = ", ".join(sorted({*OPTION_NAMES, *beside}))
        faults += [Fault(f"/{name}", "unknown_field", f"legal: {legal}") for name in sorted(unknown)]
    if OPTION_NAMES.isdisjoint(given):
        return DEFAULT_OPTIONS
    try:
        read = OPTIONS.load({name: given[name] for name in OPTIONS.fields if name in given})
    except ma.ValidationError as error:
        faults += faults_of(error)
        return DEFAULT_OPTIONS
    return PredictionOptions(read["explain"], read["missing"], read["on_error"] == "skip", read["subject"])


def _documented(field: fields.Field[Any]) -> dict[str, Any]:
    described = dict(field.metadata)
    if field.load_default is not None or (isinstance(field, Choice) and None in field.words):
        described["default"] = field.load_default
    return described


OPTION_SCHEMAS: Final[Mapping[str, Any]] = {name: _documented(field) for name, field in OPTIONS.fields.items()}
"""JSON Schema of each option in a body."""


STREAM_PARAMETERS: Final[list[dict[str, Any]]] = [
    {
        "in": "query",
        "name": name,
        "required": False,
        "schema": {
            "type": "string",
            **(
                {"enum": [word for word in field.words if word is not None]}
                if isinstance(field, Choice)
                else {"pattern": field.metadata["pattern"]}
            ),
        },
        "description": f"of CSV and lines of JSON, in the place of `{name}` in a JSON body",
    }
    for name, field in OPTIONS.fields.items()
]
"""OpenAPI parameters of the options in the query of a stream."""


ALIAS_PARAMETER: Final[Mapping[str, Any]] = {
    "in": "query",
    "name": "alias",
    "required": False,
    "schema": {"type": "string", "pattern": f"^{ALIAS}$"},
    "description": "the alias of the version that is to answer",
}


PREDICTION_REQUEST: Final = rows_or_columns(
    "asked", OPTION_SCHEMAS, {"rows": [{"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak"}], "explain": "path"}
)


PREDICTION_STREAMS: Final[Mapping[str, Any]] = {
    "text/csv": {
        "type": "string",
        "description": "the first line names the attributes, in any order; answered once all has come, as CSV",
        "examples": ["Outlook,Humidity,Wind\nSunny,High,Weak\nRain,High,\n"],
    },
    "application/x-ndjson": {
        "type": "string",
        "description": "a line a row: an object of attribute names and values; answered in this form once all has come",
        "examples": ['{"Outlook":"Sunny","Humidity":"High"}\n{"Outlook":"Rain","Wind":null}\n'],
    },
}


class ConsultationQuery(BaseSchema):
    """Which version is asked."""

    alias = matching(
        ALIAS,
        "the alias of the version that is to answer",
        error="an alias has 1 to 64 of the signs A-Z a-z 0-9 . _ -, first a letter",
        load_default=None,
    )


class ConsultationRequest(BaseSchema):
    """What is known so far."""

    known = json_value(
        "values by attribute; null: it was asked for and is not known; absent: it was not asked for yet",
        {"type": "object", "additionalProperties": LABEL},
        load_default=dict,
    )
    missing = text(
        "what is done at a test whose value is not known; null: as in training",
        load_default=None,
        allow_none=True,
        validate=one_of(list(espalier.PREDICTION_STRATEGIES)),
    )


class Question(BaseSchema):
    """What is to be found out next."""

    attribute = text("its name")
    kind = text("what its values are")
    categories = list_of(json_value("a category", LABEL), "that training saw")
    cost = real("what it costs to find out")
    node = integer("number of the node, or of the rule, that asks")


class Possible(BaseSchema):
    """An answer that is still possible."""

    label = json_value("the class", LABEL)
    weight = real("training weight of the leaves that give it and can be reached")


class Consultation(BaseSchema):
    """How far the answer has come."""

    model = fields.String()
    version = fields.Integer()
    settled = boolean("whether the answer is the same whatever else is found out")
    next = fields.Nested(Question, metadata={"description": "what is to be found out next; absent once settled"})
    possible = list_of(fields.Nested(Possible), "what it can still be (classification)")
    range = list_of(fields.Float(), "the least and the greatest number that it can still be (regression)")
    label = json_value("the class, once it is settled (classification)", LABEL)
    value = real("the number, once it is settled (regression)")
    answer = fields.Nested(Answer, metadata={"description": "the whole answer, once no more is left to ask"})
    cost = json_value("`total` and cost by attribute of what was looked at so far, each paid once", OBJECT)


DIALECT = "https://json-schema.org/draft/2020-12/schema"


TYPES: Mapping[type, str] = {bool: "boolean", int: "number", float: "number", str: "string"}


UNREAD: Mapping[espalier.Role, str] = {
    espalier.Role.TARGET: "what is answered; a value is passed over",
    espalier.Role.WEIGHT: "the weight in training; a value is passed over",
    espalier.Role.IGNORE: "never looked at; a value is passed over",
}


def row_schema(schema: espalier.Schema, *, title: str) -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of a row that a version with this schema answers."""
    return {
        "$schema": DIALECT,
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
        cell |= {"pattern": WITHOUT_NUL} if "string" in types else {}
    else:
        cell["anyOf"] = [{"type": [*types, "null"]}, {"enum": list(missing_values)}]
    if attribute.kind == espalier.FeatureKind.DATETIME:
        cell["description"] = "datetime: a date or a time by ISO 8601, without a zone taken as UTC"
    elif attribute.coded:
        cell["description"] = f"{attribute.kind}: one of the examples; another value was never seen in training"
        cell["examples"] = list(attribute.categories)
    return cell


def _types(attribute: espalier.Feature) -> list[str]:
    """Give the JSON types that its known values may have; of a column that was empty at training, any."""
    if attribute.kind == espalier.FeatureKind.DATETIME:
        return ["string"]
    if not attribute.coded:
        return ["number"]
    return sorted({TYPES[type(label)] for label in attribute.categories} or {*TYPES.values()})
