"""Models, versions and aliases."""

from collections.abc import Mapping
from typing import Any

from marshmallow import fields

import espalier
from service.database import ALIAS
from service.schemas.fields import (
    LABEL,
    MAX_INTEGER,
    OBJECT,
    POINT,
    PRINTABLE,
    BaseSchema,
    ListOrEmpty,
    QueryInteger,
    StrictInteger,
    UtcDateTime,
    integer,
    json_value,
    list_of,
    matching,
    moment,
    one_of,
    page_limit,
    page_of,
    printable,
    real,
    text,
)
from service.usecases.models import MAX_DESCRIPTION_CHARS, MAX_TAG_CHARS, MAX_TAGS


class Model(BaseSchema):
    """A model: a name with versions."""

    name = fields.String()
    last_number = fields.Integer(data_key="newest_version")
    description = fields.String(allow_none=True)
    tags = ListOrEmpty(fields.String())
    mask = ListOrEmpty(
        fields.String(), metadata={"description": "attributes whose values are not kept in the decision log"}
    )
    retention_days = integer(
        "days after which decisions are deleted; null: as ESPALIER_RETENTION_DAYS says", allow_none=True
    )
    operating_point = json_value("from which probability on the label is given; null: the most probable one is", POINT)
    created = fields.AwareDateTime()


ModelPage = page_of(Model)


LONGEST_RETENTION_DAYS = 36_500


class ModelChange(BaseSchema):
    """What is to be said of a model; what is not named stays, null takes it away."""

    description = fields.String(
        allow_none=True,
        metadata={
            "description": "for people",
            "maxLength": MAX_DESCRIPTION_CHARS,
            "pattern": f"^(?:{PRINTABLE}|[\\n\\t])*$",
        },
    )
    tags = fields.List(
        printable("a word", longest=MAX_TAG_CHARS),
        allow_none=True,
        metadata={"description": "words to sort models by", "maxItems": MAX_TAGS, "uniqueItems": True},
    )
    mask = fields.List(
        fields.String(),
        allow_none=True,
        metadata={
            "description": "attributes whose values are not kept in the decision log, from now on; such decisions "
            "cannot be answered again to be verified",
            "uniqueItems": True,
        },
    )
    retention_days = StrictInteger(
        1,
        LONGEST_RETENTION_DAYS,
        "days after which decisions are deleted; null: as ESPALIER_RETENTION_DAYS says",
        allow_none=True,
    )
    operating_point = json_value(
        "the label is given where its probability reaches this one, elsewhere the most probable of the others; null: "
        "the most probable one is given. Versions without such a class answer as they were trained",
        {**POINT, "type": "object"},  # null is added by what follows
        allow_none=True,
    )


class Version(BaseSchema):
    """An immutable version of a model."""

    model = fields.String(attribute="model.name")
    number = fields.Integer(data_key="version")
    parent_number = integer("the version that it was pruned from", allow_none=True, data_key="parent")
    data_set_id = fields.String(allow_none=True, data_key="dataset")
    job_id = fields.String(allow_none=True, data_key="job")
    preset = fields.String()
    summary = json_value("sizes, training and held-out figures", OBJECT)
    document_sha256 = fields.String()
    seconds = real("that training or pruning took")
    created = fields.AwareDateTime()
    archived = moment("since when it answers no more", allow_none=True)


VersionPage = page_of(Version)


DOCUMENT_REQUEST: Mapping[str, Any] = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "description": "a model document, as the service gave it",
                "required": ["format", "format_version", "kind", "schema", "config", "preparation", "training"],
                "properties": {
                    "format": {"const": "espalier"},
                    "format_version": {"const": espalier.FORMAT_VERSION},
                    "kind": {"enum": ["tree", "rules"]},
                    **{name: {"type": "object"} for name in ("schema", "config", "preparation", "training")},
                    "tree": {"type": "object"},
                    "rules": {"type": "object"},
                    "pruning": {"type": ["object", "null"]},
                    "notes": {"type": "array", "items": {"type": "string"}},
                },
            }
        }
    },
}


TREE: Mapping[str, Any] = {
    "type": "object",
    "description": "a list a column, an entry a node, the nodes in preorder: node 0 is the root, and the subtree of "
    "node i is the entries i to i + size[i] - 1. Of a part, `node` has the numbers in the whole tree, and `folded` "
    "how many leaves are left out below each",
}


class TreeQuery(BaseSchema):
    """In which form to show a tree."""

    format = text("the form", load_default="json", validate=one_of(["json", "text", "mermaid", "dot", "svg"]))
    depth = QueryInteger(
        0, MAX_INTEGER, "at most so many tests below each other; what is below is folded and counted", load_default=None
    )
    node = QueryInteger(0, MAX_INTEGER, "the number of the node to begin at", load_default=0)


class RulesQuery(BaseSchema):
    """In which form to show rules, and whether of one class only."""

    format = text("the form", load_default="json", validate=one_of(["json", "text", "logic"]))
    label = text("only what a row of this class must be like", load_default=None, data_key="class")


class Importance(BaseSchema):
    """An attribute's share of what the tests of a tree gain."""

    attribute = text("its name")
    importance = real("from 0 to 1; all add up to 1, or are 0")


class Importances(BaseSchema):
    """The attributes of a version, the most telling first."""

    attributes = fields.List(fields.Nested(Importance))


class Accuracy(BaseSchema):
    """How often a version is right."""

    model = fields.String()
    version = fields.Integer()
    n_outcomes = integer("decisions whose outcome is known; all else is about these")
    accuracy = real("share that was right (classification)", allow_none=True)
    classes = list_of(json_value("a class", LABEL), "of the confusion matrix, in this order")
    confusion = list_of(
        fields.List(fields.Integer()), "a row for each true class, a column for each answer (classification)"
    )
    mae = real("mean absolute error (regression)", allow_none=True)
    rmse = real("root mean squared error (regression)", allow_none=True)
    bias = real("mean of answer minus truth (regression)", allow_none=True)


class AliasEvent(BaseSchema):
    """One change of an alias; the newest is in force."""

    model = fields.String(attribute="version.model.name")
    alias = fields.String()
    version = integer("that it points at since then", attribute="version.number")
    number = integer("changes of this alias, counted from 1")
    event = text("set or rollback")
    at = fields.AwareDateTime()
    key_id = text("id of the key that asked; null where keys were off", data_key="key", allow_none=True)


AliasPage = page_of(AliasEvent)


class AliasRequest(BaseSchema):
    """Have an alias point at a version."""

    version = StrictInteger(1, MAX_INTEGER, "the number of the version", required=True)
    if_current = StrictInteger(
        1,
        MAX_INTEGER,
        "only if it points at this version now; null: only if there is no such alias yet",
        allow_none=True,
    )


class AliasesQuery(BaseSchema):
    """Which part of the list of aliases."""

    limit = page_limit()
    cursor = matching(
        ALIAS, "the `next` of the page before", error="must be the `next` of the page before", load_default=None
    )


class AliasQuery(BaseSchema):
    """Which changes of an alias."""

    at = UtcDateTime(
        load_default=None, metadata={"description": "only what was in force at this moment (ISO 8601 with zone)"}
    )
    limit = page_limit()
    cursor = QueryInteger(1, MAX_INTEGER, "the `next` of the page before", load_default=None)
