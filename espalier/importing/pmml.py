"""Import TreeModels and RuleSetModels of PMML, such as the exports of R, of Espalier, or of tools for scikit-learn."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from espalier.config.presets import training_config
from espalier.data.labels import MAX_INTEGER
from espalier.data.missing_values import DEFAULT_MISSING_VALUES
from espalier.data.schema import Feature, FeatureKind, Role, Schema
from espalier.documents.model import from_json, to_json
from espalier.errors import ConfigError, Fault
from espalier.importing.pmml_answers import read_answer
from espalier.importing.pmml_arrays import tree_of
from espalier.importing.pmml_fields import Field, read_fields
from espalier.importing.pmml_predicates import Budget
from espalier.importing.pmml_rules import draft_rules, is_rule_list, rule_list
from espalier.importing.pmml_tree import TreeCompiler
from espalier.importing.xml_elements import Element, read_xml
from espalier.model.model import Model, TrainingRecord
from espalier.model.node_tests import LEAF
from espalier.model.preparation import Preparation
from espalier.model.rules import RuleList
from espalier.model.texts import one_line
from espalier.model.tree import Tree

NAMESPACES: Final = ("http://www.dmg.org/PMML-", "https://www.dmg.org/PMML-")
IGNORED: Final = frozenset(
    {"Annotation", "Extension", "MiningBuildTask", "ModelExplanation", "ModelStats", "ModelVerification", "Partition"}
)
"""Elements that change no answer."""
MODELS: Final = ("TreeModel", "RuleSetModel")
PREDICATES: Final = frozenset({"SimplePredicate", "SimpleSetPredicate", "CompoundPredicate", "True", "False"})
MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "PMML": frozenset({"Header", "DataDictionary", "TransformationDictionary", *MODELS}),
    "DataDictionary": frozenset({"DataField"}),
    "DataField": frozenset({"Value", "Interval"}),
    "TransformationDictionary": frozenset(),
    "TreeModel": frozenset({"MiningSchema", "Output", "Targets", "LocalTransformations", "Node"}),
    "RuleSetModel": frozenset({"MiningSchema", "Output", "Targets", "LocalTransformations", "RuleSet"}),
    "Targets": frozenset(),
    "LocalTransformations": frozenset({"DerivedField"}),
    "MiningSchema": frozenset({"MiningField"}),
    "Output": frozenset({"OutputField"}),
    "Node": PREDICATES | {"ScoreDistribution", "Node"},
    "RuleSet": frozenset({"RuleSelectionMethod", "ScoreDistribution", "SimpleRule", "CompoundRule"}),
    "SimpleRule": PREDICATES | {"ScoreDistribution"},
    "CompoundPredicate": PREDICATES,
    "SimpleSetPredicate": frozenset({"Array"}),
}
"""The legal children of each element. The children of other elements are not checked."""
ONCE: Final = frozenset({"PMML", "TreeModel", "RuleSetModel", "SimpleSetPredicate"})
"""Elements whose children must have different names."""
FUNCTIONS: Final = ("classification", "regression")
COMPUTED: Final = frozenset({"transformedValue", "decision"})
MAJORITY: Final = {True: "a condition on this value does not hold", False: "the row goes down the heaviest branch"}
"""What ``majority`` does where the document has no answer to a missing value, by whether the model is a rule list."""
MAX_NOTE_CHARS: Final = 200
MAX_WEIGHTS: Final = 20_000_000
"""Maximum number of class weights in all nodes or rules together; they take 160 MB."""
INVALID_NOTES: Final = {
    True: "a category that the document does not list is read as missing; the document defines no answer for it",
    False: "a number outside the Interval of its field is read like any other; the document defines no answer for it",
}
"""Notes on invalid values for which the document defines no answer, keyed by whether the field has categories."""


def from_pmml(content: bytes, *, missing: str | None = None) -> Model:
    r"""Return a TreeModel or RuleSetModel of PMML 3 or 4 as a model that gives the same answers.

    Args:
        content: The document, in UTF-8 or in the encoding that its XML declaration names.
        missing: Applies if the document gives no answer to a missing value. With ``majority``, the row goes down the
            heaviest branch of a tree, or a condition of a rule list does not hold. With None, the document is refused.

    Raises:
        DocumentError: Not such a document, or a part cannot be imported exactly; the message gives the line if known.
        SchemaError: A column is not legal: for example, its name is empty.
        ConfigError: `missing` is neither ``majority`` nor None.

    >>> import espalier
    >>> table = espalier.dataset_from_csv("wind,play\nweak,yes\nstrong,no\n", target="play")
    >>> document = espalier.export_model(espalier.train(table, "id3"), "pmml")
    >>> print(espalier.to_text(espalier.from_pmml(document.encode())), end="")
    wind is strong: no (1)
    wind is weak: yes (1)
    """
    if missing not in (None, "majority"):
        raise ConfigError([Fault("/missing", "unknown_value", "must be majority, or null")])
    root = read_xml(content, namespaces=NAMESPACES, ignored=IGNORED)
    model = _checked_model(root)
    fields, target = _fields(root, model)
    columns = {field.feature.name: field for field in fields.values()}
    budget = Budget()
    is_list = is_rule_list(model, fields, budget)
    read = _read_rules(model, fields, target, budget) if is_list else _read_tree(model, fields, target, budget, missing)
    if missing is None:
        _refuse_unanswered(columns.values(), MAJORITY[is_list])
    n_rows = min(max(1, round(read.weight)), MAX_INTEGER)
    notes = [_origin(root)]
    if missing is not None:
        notes.append(f"where the document has no answer to a missing value, {MAJORITY[is_list]}")
    invalid = {field.is_category for field in columns.values() if field.returns_invalid}
    notes += [note for is_category, note in INVALID_NOTES.items() if is_category in invalid]
    if target.is_category and not read.has_shares:
        notes.append("the document does not give the shares of the classes: the share of the answer is shown as 1")
    if not target.is_category:
        notes.append("the document does not give the spread of the rows: standard deviations are shown as 0")
    criterion = "gini" if target.is_category else "squared_error"
    imported = Model(
        schema=_schema(columns, target),
        config=training_config("cart", criterion=criterion, missing=read.strategy),
        preparation=read.preparation,
        body=read.body,
        training=TrainingRecord(n_rows, n_rows, "", None, {"n_rows": n_rows}),
        notes=tuple(notes),
    )
    return from_json(to_json(imported))  # checked as every other document is


@dataclass(frozen=True, slots=True)
class _Read:
    """The parts of a model that are read from a TreeModel or RuleSetModel."""

    body: Tree | RuleList
    strategy: str
    preparation: Preparation
    has_shares: bool
    weight: float


def _checked_model(root: Element) -> Element:
    if root.name != "PMML" or not (root.get("version") or "").startswith(("3.", "4.")):
        raise root.refused("must be PMML of a version 3 or 4")
    models = list(root.all(*MODELS))
    stack = [root]
    while stack:
        element = stack.pop()
        members = MEMBERS.get(element.name)
        for child in element.children if members is not None else ():
            if child.name not in members:  # type: ignore[operator]
                raise child.refused(f"cannot be imported within {element.name}")
            stack.append(child)
        if element.name in ONCE:
            _refuse_repeated(element)
    if len(models) != 1:
        raise root.refused(f"must have one {' or '.join(MODELS)}")
    [model] = models
    if model.get("functionName") not in FUNCTIONS or model.get("isScorable") == "false":
        raise model.refused(f"functionName must be {' or '.join(FUNCTIONS)}, and isScorable not false")
    for output in (each for outputs in model.all("Output") for each in outputs.all("OutputField")):
        if output.get("feature") in COMPUTED:
            raise output.refused(f"{output.get('name')!r} is computed from the answer, which cannot be imported")
    return model


def _refuse_repeated(element: Element) -> None:
    names = set[str]()
    for child in element.children:
        if child.name in names:
            raise child.refused(f"must be in {element.name} only once")
        names.add(child.name)


def _fields(root: Element, model: Element) -> tuple[dict[str, Field], Field]:
    """Return the fields that may be tested, and the target with the kind that the model's functionName requires."""
    fields, target = read_fields(root, model)
    classifies = model.get("functionName") == "classification"
    if target is None:
        kind = FeatureKind.NOMINAL if classifies else FeatureKind.NUMERIC
        names = {field.feature.name for field in fields.values()}
        name = next(name for at in count() if (name := "target" + "_" * at) not in names)
        target = Field(Feature(name, kind, Role.TARGET), model, "string" if classifies else "double", is_open=True)
    if classifies and not target.is_category:
        target = replace(target, feature=replace(target.feature, kind=FeatureKind.NOMINAL), is_open=True)
    if not classifies and target.is_category:
        raise target.element.refused("the target of a regression must be continuous")
    return fields, target


def _read_rules(model: Element, fields: Mapping[str, Field], target: Field, budget: Budget) -> _Read:
    drafts = draft_rules(model, fields, target, budget)
    _refuse_many_weights(model, len(drafts), len(target.labels))
    columns = {field.feature.name: field for field in fields.values()}
    attributes = {name: field.finished() for name, field in columns.items()}
    rules = rule_list(drafts, attributes, len(target.labels))
    replacements = [field.replacement for field in columns.values()]
    preparation, strategy = Preparation(), "direction"
    if any(replacement is not None for replacement in replacements):
        imputed = tuple(math.nan if replacement is None else replacement for replacement in replacements)
        preparation, strategy = Preparation(imputed=imputed), "imputed"
    has_shares = all(answer.has_shares for _, answer in drafts)
    return _Read(rules, strategy, preparation, has_shares, math.fsum(rule.weight for rule in rules.answers))


def _read_tree(
    model: Element, fields: Mapping[str, Field], target: Field, budget: Budget, missing: str | None
) -> _Read:
    root = model.first("Node")
    if root is None:
        raise model.refused("needs a Node")
    drafts = TreeCompiler(model, fields, budget, extend=missing is not None).compile(root)
    sources = {id(draft.source): draft.source for draft in drafts}  # a node may become many drafts, and is read once
    read = {key: read_answer(source, target) for key, source in sources.items()}
    answers = {key: answer for key, answer in read.items() if answer is not None}
    for draft in drafts:
        if draft.kind == LEAF and id(draft.source) not in answers:
            raise draft.source.refused("has no score, but must answer some rows")
    _refuse_many_weights(model, len(drafts), len(target.labels))
    columns = dict.fromkeys(field.feature.name for field in fields.values())
    tree = tree_of(drafts, answers, {name: place for place, name in enumerate(columns)}, len(target.labels))
    strategy = "surrogate" if tree.surrogates is not None else missing or "direction"
    has_shares = all(answers[id(draft.source)].has_shares for draft in drafts if draft.kind == LEAF)
    return _Read(tree, strategy, Preparation(), has_shares, float(tree.weight[0]))


def _refuse_unanswered(columns: Iterable[Field], majority: str) -> None:
    """Refuse fields without an answer to a missing value. Those that a tree tests have been refused at the test."""
    for field in columns:
        if not field.has_answer:
            raise field.element.refused(
                f"a missing value of {field.feature.name!r} has no answer; import with missing='majority', by which "
                f"{majority}"
            )


def _refuse_many_weights(model: Element, n_answers: int, n_classes: int) -> None:
    if n_answers * n_classes > MAX_WEIGHTS:
        raise model.refused(
            f"has {n_classes} classes for {n_answers} nodes or rules; the product must be at most {MAX_WEIGHTS}"
        )


def _schema(columns: Mapping[str, Field], target: Field) -> Schema:
    numbers = {field.missing_numbers for field in columns.values() if not field.is_category}
    if len(numbers) > 1:
        raise target.element.refused("the numbers that mean a missing value must be the same for all fields")
    missing = (repr(number) for number in sorted(frozenset().union(*numbers)))
    features = (*(field.finished() for field in columns.values()), target.finished())
    return Schema(features, (*DEFAULT_MISSING_VALUES, *missing))


def _origin(root: Element) -> str:
    header = root.first("Header")
    application = None if header is None else header.first("Application")
    names = [] if application is None else [application.get("name"), application.get("version")]
    writer = one_line(" ".join(filter(None, names)))[:MAX_NOTE_CHARS]
    return f"imported from PMML {one_line(root.get('version') or '')}" + (f", written by {writer}" if writer else "")
