"""Models, versions and aliases."""

from collections.abc import Mapping
from typing import Any

import marshmallow as ma

import espalier
from service.database import ALIAS
from service.schemas import fields
from service.serialization.media_types import JSON, PMML, XML
from service.usecases.models import MAX_DESCRIPTION_CHARS, MAX_TAG_CHARS, MAX_TAGS

RETENTION = "days after which decisions are deleted; null: the setting ESPALIER_RETENTION_DAYS"


class Model(fields.BaseSchema):
    name = fields.Text()
    newest_version = fields.Integer("the highest number of a version; null: there is no version", allow_none=True)
    description = fields.Text(allow_none=True)
    tags = fields.ListOf(fields.Text())
    mask = fields.ListOf(fields.Text(), "attributes whose values are not stored in the decision log")
    retention_days = fields.Integer(RETENTION, allow_none=True)
    operating_point = fields.OPERATING_POINT
    created = fields.DateTime()

    @ma.post_dump
    def with_lists(self, shown: dict[str, Any], **_: object) -> dict[str, Any]:
        """Replace the tags and the mask by empty lists if they are null."""
        return {**shown, "tags": shown["tags"] or [], "mask": shown["mask"] or []}


class ModelChange(fields.BaseSchema):
    """New settings of a model; null removes a setting, and a setting that is left out does not change."""

    description = fields.Text(
        "a description for people",
        allow_none=True,
        schema={"maxLength": MAX_DESCRIPTION_CHARS, "pattern": f"^(?:{fields.PRINTABLE}|[\\n\\t])*$"},
    )
    tags = fields.ListOf(
        fields.printable("a tag", longest=MAX_TAG_CHARS),
        "tags to group models by",
        longest=MAX_TAGS,
        allow_none=True,
        schema={"maxItems": MAX_TAGS, "uniqueItems": True},
    )
    mask = fields.ListOf(
        fields.Text(),
        "attributes whose values the decision log no longer stores; decisions without them cannot be verified",
        allow_none=True,
        schema={"uniqueItems": True},
    )
    retention_days = fields.strict_integer(1, 36_500, RETENTION, allow_none=True)
    operating_point = fields.Json(
        "the label is predicted if its probability is at least this high, else the most probable other class; null: "
        "always the most probable class. Versions without this class ignore the operating point",
        schema={**fields.POINT, "type": "object"},  # allow_none adds null
        allow_none=True,
    )


class Version(fields.BaseSchema):
    model = fields.Text(attribute="model.name")
    number = fields.Integer(data_key="version")
    parent_number = fields.Integer("the version that this one was pruned from", allow_none=True, data_key="parent")
    data_set_id = fields.Text(allow_none=True, data_key="dataset")
    job_id = fields.Text(allow_none=True, data_key="job")
    preset = fields.Text()
    summary = fields.AnyObject("task and size of the model, and its figures on training rows and held-out rows")
    document_sha256 = fields.Text()
    seconds = fields.Number("seconds that training or pruning took")
    created = fields.DateTime()
    archived = fields.DateTime("time since which the version no longer predicts", allow_none=True)


PMML_DOCUMENT: Mapping[str, Any] = {
    "schema": {"type": "string", "description": "a PMML document with a TreeModel or a RuleSetModel"}
}
DOCUMENT_REQUEST: Mapping[str, Any] = {
    "required": True,
    "content": {
        JSON: {
            "schema": {
                "type": "object",
                "description": "a model document, as the service returns it",
                "required": ["format", "format_version", "kind", "schema", "config", "preparation", "training"],
                "properties": {
                    "format": {"const": "espalier"},
                    "format_version": {"const": espalier.FORMAT_VERSION},
                    "kind": {"enum": ["tree", "rules"]},
                    **dict.fromkeys(("schema", "config", "preparation", "training", "tree", "rules"), fields.OBJECT),
                    "pruning": {"type": ["object", "null"]},
                    "notes": {"type": "array", "items": {"type": "string"}},
                },
            }
        },
        XML: PMML_DOCUMENT,
        PMML: PMML_DOCUMENT,
    },
}

TREE: Mapping[str, Any] = {
    "type": "object",
    "description": "one list per column with one entry per node, the nodes in preorder: node 0 is the root, and the "
    "subtree of node i is the entries i to i + size[i] - 1. For a part of a tree, `node` has the numbers in the whole "
    "tree, and `folded` the number of leaves left out below each node",
}


class TreeQuery(fields.BaseSchema):
    format = fields.word(["json", "text", "mermaid", "dot", "svg"], "the format", load_default="json")
    depth = fields.query_integer(
        0,
        fields.MAX_INTEGER,
        "maximum number of tests on a path; deeper levels are folded and counted",
        load_default=None,
    )
    node = fields.query_integer(0, fields.MAX_INTEGER, "the node to start at", load_default=0)


class RulesQuery(fields.BaseSchema):
    format = fields.word(["json", "text", "logic"], "the format", load_default="json")
    label = fields.Text("only the condition for this class", load_default=None, data_key="class")


class ImportQuery(fields.BaseSchema):
    missing = fields.word(
        ["majority"],
        "PMML only. majority: a row with a missing value that the document does not handle goes down the heaviest "
        "branch; default: such a document is refused",
        load_default=None,
    )


class ExportQuery(fields.BaseSchema):
    format = fields.word(list(espalier.EXPORTS), "the format; default: return the list of formats", load_default=None)
    missing = fields.MISSING_STRATEGY


class ExportFormat(fields.BaseSchema):
    format = fields.Text("name of the format")
    meaning = fields.Text("what the file is")
    ending = fields.Text("ending of the file's name")
    obstacle = fields.Text("why the format cannot express this version exactly; null: it can", allow_none=True)


class ExportFormats(fields.BaseSchema):
    formats = fields.ListOf(fields.Nested(ExportFormat))


class Importance(fields.BaseSchema):
    attribute = fields.Text("name of the attribute")
    importance = fields.Number("from 0 to 1; all importances add up to 1, or all are 0")


class Importances(fields.BaseSchema):
    attributes = fields.ListOf(fields.Nested(Importance))


class Accuracy(fields.OfVersion):
    n_outcomes = fields.Integer("number of decisions whose outcome is known, over which all figures are computed")
    accuracy = fields.Number("share of correct predictions (classification)", allow_none=True)
    classes = fields.ListOf(fields.Label("a class"), "order of the classes in the confusion matrix")
    confusion = fields.ListOf(
        fields.ListOf(fields.Integer()),
        "confusion matrix: a row per true class, a column per predicted class (classification); left out above "
        f"{espalier.MAX_CONFUSION_CLASSES:,} classes",
    )
    mae = fields.Number("mean absolute error (regression)", allow_none=True)
    rmse = fields.Number("root mean squared error (regression)", allow_none=True)
    bias = fields.Number("mean of prediction minus truth (regression)", allow_none=True)


class AliasEvent(fields.BaseSchema):
    model = fields.Text(attribute="version.model.name")
    alias = fields.Text()
    version = fields.Integer("the version that the alias points at after this change", attribute="version.number")
    number = fields.Integer("number of the change of this alias, counted from 1")
    event = fields.Text("set or rollback")
    at = fields.DateTime()
    key_id = fields.Text("id of the key that made the change; null if keys were off", data_key="key", allow_none=True)


class AliasRequest(fields.BaseSchema):
    version = fields.strict_integer(1, fields.MAX_INTEGER, "the version", required=True)
    if_current = fields.strict_integer(
        1,
        fields.MAX_INTEGER,
        "change the alias only if it points at this version now; null: only if the alias does not exist yet",
        allow_none=True,
    )


class AliasesQuery(fields.LimitQuery):
    cursor = fields.matching(ALIAS, "`next` of the previous page", error=fields.NO_CURSOR, load_default=None)


class AliasQuery(fields.LimitQuery):
    at = fields.utc_time("only the change that was in force at this time (ISO 8601 with a time zone)")
    cursor = fields.query_integer(1, fields.MAX_INTEGER, "`next` of the previous page", load_default=None)
