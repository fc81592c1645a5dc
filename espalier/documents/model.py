"""The JSON document of a model. It has a version and one canonical form, and is checked when it is read.

Of the member ``pruning``, only the type (an object or null) and the depth are checked, not the content.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from espalier.config.compatibility import check_training
from espalier.config.presets import config_from_dict, config_to_dict
from espalier.data.schema import Schema
from espalier.documents.parts import (
    faults_of_linear,
    preparation_document,
    read_preparation,
    read_record,
    record_document,
)
from espalier.documents.rules import read_rules, rules_document
from espalier.documents.tree import as_lists, read_tree, tree_arrays
from espalier.errors import DocumentError, Fault, NotApplicable, located
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.model.tree import Tree

FORMAT: Final = "espalier"
FORMAT_VERSION: Final = 1


def to_json(model: Model) -> bytes:
    """Return a model as JSON in canonical form, which is equal for equal models. Raise the errors of `to_document`."""
    # orjson writes an array like a list, and NaN as null.
    return orjson.dumps(_document(model, _body_arrays(model)), option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)


def from_json(content: bytes | str) -> Model:
    """Read the bytes that `to_json` returns.

    Raises:
        DocumentError: `content` is not JSON or not a legal model document; see `from_document`.
    """
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise DocumentError([Fault("", "not_json", f"not JSON: line {error.lineno}, column {error.colno}")]) from None
    return _read_document(document)


def to_document(model: Model) -> dict[str, Any]:
    """Return a model as JSON values, with null for NaN.

    Raises:
        NotApplicable: The model has an operating point, or another strategy for missing values than in training.
    """
    return _document(model, as_lists(_body_arrays(model)))


def _document(model: Model, body: Mapping[str, Any]) -> dict[str, Any]:
    if model.trained is not None:
        reason = "a document has no operating point and no other strategy for missing values than in training"
        raise NotApplicable(f"{reason}: write the attribute `trained` of the model")
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": "rules" if isinstance(model.body, RuleList) else "tree",
        "schema": model.schema.to_dict(),
        "config": config_to_dict(model.config),
        "preparation": preparation_document(model.preparation),
        **body,
        "training": record_document(model.training),
        "pruning": None if model.pruning is None else dict(model.pruning),
        "notes": list(model.notes),
    }


def from_document(document: Any) -> Model:
    """Read a model from JSON values. They are checked, because they may come from an attacker.

    Raises:
        DocumentError: The document is not legal; each fault has its JSON pointer.
    """
    try:
        # Values that JSON cannot hold are refused (lone surrogates, integers of 65 bits) or become null (infinities).
        plain = orjson.loads(orjson.dumps(document))
    except (orjson.JSONEncodeError, orjson.JSONDecodeError):
        raise DocumentError([Fault("", "not_json", "must be made of values that JSON can hold")]) from None
    return _read_document(plain)


def _read_document(document: Any) -> Model:
    current = _checked_header(document)
    schema_document, config_document = _object(current, "schema"), _object(current, "config")
    with located("/schema", DocumentError):
        schema = Schema.from_dict(schema_document)
    with located("/config", DocumentError):
        config = config_from_dict(config_document)
        check_training(schema, config)
    read_body = read_rules if current["kind"] == "rules" else read_tree
    body = read_body(_object(current, current["kind"]), schema)
    preparation = read_preparation(_object(current, "preparation"), schema)
    if isinstance(body, Tree):
        if (body.linear is not None) != (config.leaf == "linear"):
            message = "must be given if the configuration's leaf is linear, and only then"
            raise DocumentError([Fault("/tree/linear", "combination", message)])
        DocumentError.raise_for(faults_of_linear(body.linear, schema, preparation.imputed) if body.linear else ())
    notes = current.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise DocumentError([Fault("/notes", "wrong_type", "must be a list of texts")])
    pruning = current.get("pruning")
    if pruning is not None and not isinstance(pruning, dict):
        raise DocumentError([Fault("/pruning", "wrong_type", "must be an object or null")])
    try:
        orjson.dumps([[[[pruning]]]])  # when written, it may be four levels deeper
    except orjson.JSONEncodeError:
        raise DocumentError([Fault("/pruning", "out_of_range", "must have at most 250 levels")]) from None
    return Model(schema, config, preparation, body, read_record(_object(current, "training")), pruning, tuple(notes))


def _checked_header(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DocumentError([Fault("/format", "not_a_model", f'must be an object with "format": "{FORMAT}"')])
    version = document.get("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        legal = f"must be a version from 1 to {FORMAT_VERSION}; a later one needs a later Espalier"
        raise DocumentError([Fault("/format_version", "unknown_version", legal)])
    if document.get("kind") not in ("tree", "rules"):
        raise DocumentError([Fault("/kind", "unknown_value", "must be tree or rules")])
    return document


def _object(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = document.get(name)
    if not isinstance(part, dict):
        raise DocumentError([Fault(f"/{name}", "wrong_type", "must be an object")])
    return part


def _body_arrays(model: Model) -> dict[str, Any]:
    if isinstance(model.body, RuleList):
        return {"rules": rules_document(model.body, model.schema)}
    return {"tree": tree_arrays(model.body)}
