"""Write a model as PMML 4.4: a TreeModel.

Children are tried in order. For a missing value or an unseen category, the default child, if any, is taken::

    <Node id="0" defaultChild="2">
      <True/>
      <Node id="1"><SimplePredicate field="x" operator="lessOrEqual" value="2.5"/></Node>
      <Node id="2"><SimplePredicate field="x" operator="greaterThan" value="2.5"/></Node>
    </Node>

Surrogate tests are the further predicates of a CompoundPredicate ``surrogate``. A list of rules is written as a root
with a child for each rule, since readers return neither probabilities nor numbers for a RuleSetModel. The text is
written line by line, without recursion, so the depth of the tree is not limited.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import quoteattr

from espalier.data.labels import label_text
from espalier.data.schema import Feature, FeatureKind, Role
from espalier.export.cases import FRACTIONAL
from espalier.export.obstacles import name_obstacle, number_obstacle, type_obstacle
from espalier.export.program import ANSWER, CATEGORY, CUT, Exported, Program, Step
from espalier.export.tables import listed_numbers
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.version import __version__

NAMESPACE: Final = "http://www.dmg.org/PMML-4_4"
NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that no document in XML 1.0 can contain, not even as references."""
LINE_ENDS: Final = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
PLAIN: Final = re.compile(r"[^\s\"'\\&<>]+")
"""Categories that every reader understands within an array. Readers differ in the quoting of others."""
MAX_JAVA_INTEGER: Final = 2**31 - 1
ARRAY_TYPES: Final = {"boolean": "string", "double": "real", "integer": "int", "string": "string"}


def pmml_obstacle(model: Model, program: Program) -> str | None:
    """Return why a model cannot be expressed exactly in PMML; None if it can."""
    if program.divides:
        return FRACTIONAL
    if program.linear:
        return "its leaves are linear equations, and a leaf of a TreeModel is one number"
    columns = [*model.schema.attributes, *filter(None, [model.schema.target])]
    reasons = (reason for feature in columns if (reason := _of_column(feature)) is not None)
    return next(reasons, number_obstacle(model, "PMML") or _of_steps(model, program))


def pmml(given: Exported) -> str:
    """Return a model as a PMML document; `pmml_obstacle` must be None for the model."""
    return "".join(f"{line}\n" for line in _Writer(given.model, given.program).lines(given.notes))


def _of_column(feature: Feature) -> str | None:
    name, labels = feature.name, feature.categories
    if any(NOT_XML.search(text) for text in (name, *map(label_text, labels))):
        return f"{name!r} has a control character, which no XML document can hold"
    return name_obstacle(feature) or type_obstacle(feature, "and a field of PMML has one type")


def _of_steps(model: Model, program: Program) -> str | None:
    for step in program.steps:
        feature = model.schema.attributes[step.feature]
        if step.kind == CUT and feature.coded and not feature.categories:
            return f"{feature.name!r} has no categories, and PMML takes any value of such a field as known"
        chain = not isinstance(model.body, RuleList) and step.absent >= model.tree.n_nodes
        if (
            step.kind == CATEGORY
            and chain
            and program.steps[step.absent].kind != ANSWER
            and step.absent in step.targets
        ):
            return f"surrogate tests choose the branch of categories of {feature.name!r} that no row at the node has"
    return None


@dataclass(frozen=True, slots=True)
class _Test:
    """A step, and the codes that go to each target if the attribute has categories."""

    step: Step
    codes: Mapping[int, Sequence[int]]


class _Writer:
    def __init__(self, model: Model, program: Program) -> None:
        self.model, self.program, self.body = model, program, model.body
        self.attributes, self.classes = model.schema.attributes, model.schema.classes
        self.target = next(feature for feature in model.schema.features if feature.role is Role.TARGET)
        self.function = "classification" if self.classes else "regression"

    def lines(self, notes: Sequence[str]) -> Iterator[str]:
        yield '<?xml version="1.0" encoding="UTF-8"?>'
        yield from (f"<!-- {note} -->" for note in notes)
        yield f'<PMML xmlns="{NAMESPACE}" version="4.4">'
        yield f"<Header{_attributes(description=' '.join(notes[:2]))}>"
        yield f"<Application{_attributes(name='Espalier', version=__version__)}/>"
        yield "</Header>"
        yield f"<DataDictionary{_attributes(numberOfFields=len(self.attributes) + 1)}>"
        for feature in (*self.attributes, self.target):
            yield from self._field(feature)
        yield "</DataDictionary>"
        yield from self._rules() if isinstance(self.body, RuleList) else self._tree()
        yield "</PMML>"

    def _field(self, feature: Feature) -> Iterator[str]:
        kind = "ordinal" if feature.kind is FeatureKind.ORDINAL else "categorical" if feature.coded else "continuous"
        yield f"<DataField{_attributes(name=feature.name, optype=kind, dataType=_data_type(feature))}>"
        yield from (f"<Value{_attributes(value=label_text(label))}/>" for label in feature.categories)
        if feature.kind is FeatureKind.NUMERIC and feature is not self.target:
            numbers = listed_numbers(self.model)
            yield from (f"<Value{_attributes(value=number, property='missing')}/>" for number in numbers)
        yield "</DataField>"

    def _model_head(self) -> Iterator[str]:
        yield "<MiningSchema>"
        for place, feature in enumerate(self.attributes):
            treatment = {"invalidValueTreatment": "asMissing", "missingValueReplacement": self._replacement(place)}
            yield f"<MiningField{_attributes(name=feature.name, **treatment)}/>"
        yield f"<MiningField{_attributes(name=self.target.name, usageType='target')}/>"
        yield "</MiningSchema>"
        yield "<Output>"
        answer = {"optype": "categorical" if self.classes else "continuous", "dataType": _data_type(self.target)}
        name = "espalier_label" if self.classes else "espalier_value"
        yield f"<OutputField{_attributes(name=name, **answer, feature='predictedValue')}/>"
        leaf = {"optype": "categorical", "dataType": "string", "feature": "entityId"}
        yield f"<OutputField{_attributes(name='espalier_leaf', **leaf)}/>"
        for text in map(label_text, self.classes):
            share = {"optype": "continuous", "dataType": "double", "feature": "probability", "value": text}
            yield f"<OutputField{_attributes(name=f'espalier_probability({text})', **share)}/>"
        yield "</Output>"

    def _replacement(self, place: int) -> str | None:
        """Return the value that replaces a missing value in rules; None if there is none, or for a tree."""
        imputed, feature = self.model.preparation.imputed, self.attributes[place]
        if not isinstance(self.body, RuleList) or imputed is None or math.isnan(imputed[place]):
            return None
        return label_text(feature.categories[int(imputed[place])]) if feature.coded else repr(imputed[place])

    def _tree(self) -> Iterator[str]:
        stops = any(step.kind == ANSWER for step in self.program.steps[self.model.tree.n_nodes :])
        strategies = {
            "missingValueStrategy": "lastPrediction" if stops else "defaultChild",
            "noTrueChildStrategy": "returnLastPrediction" if stops else "returnNullPrediction",
        }
        yield f"<TreeModel{_attributes(functionName=self.function, **strategies, splitCharacteristic='multiSplit')}>"
        yield from self._model_head()
        tree, answered = self.model.tree, frozenset(self.program.answered)
        ends = list[int]()  # for each open element, the last node of its subtree
        predicates = {0: "<True/>"}
        for node in range(tree.n_nodes):
            while ends and ends[-1] < node:
                ends.pop()
                yield "</Node>"
            chain, default = self._chain(node)
            children = tree.children(node)
            yield self._node(node, tree.weight[node], None if stops else default)
            yield predicates.pop(node)
            if node in answered:
                yield from self._shares(node, tree.stats[node].tolist())
            for child in children:
                predicates[child] = self._any_known(chain, child)
            ends.append(node + int(tree.size[node]) - 1)
        yield from ["</Node>"] * len(ends)
        yield "</TreeModel>"

    def _chain(self, node: int) -> tuple[list[_Test], int | None]:
        """Return the test of a node with its surrogates, and the child (or None) that follows if no value is known."""
        chain, at = list[_Test](), node
        while self.program.steps[at].kind != ANSWER and (at == node or at >= self.model.tree.n_nodes):
            chain.append(self._test(at))
            at = chain[-1].step.absent
        return chain, at if chain and at < self.model.tree.n_nodes else None

    def _test(self, at: int) -> _Test:
        step, codes = self.program.steps[at], dict[int, list[int]]()
        for code in range(len(self.attributes[step.feature].categories)):
            target = step.targets[int(code > step.threshold) if step.kind == CUT else code]
            codes.setdefault(target, []).append(code)
        return _Test(step, codes)

    def _any_known(self, chain: Sequence[_Test], child: int) -> str:
        return _compound("surrogate", [self._predicate(test, child) for test in chain])

    def _predicate(self, test: _Test, target: int) -> str:
        """Return the predicate of the rows that go from a step to a target.

        For a missing value the predicate is unknown, unless it tests whether the value is missing.
        """
        step, feature = test.step, self.attributes[test.step.feature]
        if step.kind == CUT and step.threshold == math.inf:
            return _presence(feature.name, known=step.targets[0] == target, absent=step.absent == target)
        if feature.coded:
            return _one_of(feature, test.codes.get(target, ()))
        operator = "lessOrEqual" if step.targets[0] == target else "greaterThan"
        return _simple(feature, operator, repr(step.threshold + 0.0))  # Java orders -0.0 below 0.0

    def _shares(self, number: int, stats: Sequence[float]) -> Iterator[str]:
        shares = self.program.table[number].tolist()
        for label, count, share in zip(self.classes, stats, shares, strict=False):
            counted = {"value": label_text(label), "recordCount": float(count), "probability": share}
            yield f"<ScoreDistribution{_attributes(**counted)}/>"

    def _rules(self) -> Iterator[str]:
        strategies = {"missingValueStrategy": "none", "splitCharacteristic": "multiSplit"}
        yield f"<TreeModel{_attributes(functionName=self.function, **strategies)}>"
        yield from self._model_head()
        yield '<Node id="rules">'
        yield "<True/>"
        tests = list[str]()
        for at, step in enumerate(self.program.steps):
            if step.kind != ANSWER:  # a row for which the test holds goes to the next step
                tests.append(self._predicate(self._test(at), at + 1))
                continue
            rule = self.model.rules.answers[step.number]
            yield self._node(step.number, rule.weight)
            yield _compound("and", tests)
            yield from self._shares(step.number, rule.stats)
            yield "</Node>"
            tests = []
        yield "</Node>"
        yield "</TreeModel>"

    def _node(self, number: int, weight: float, default: int | None = None) -> str:
        answer = {"score": self._score(number), "recordCount": float(weight), "defaultChild": default}
        return f"<Node{_attributes(id=number, **answer)}>"

    def _score(self, number: int) -> str | float:
        codes = self.program.codes
        return label_text(self.classes[codes[number]]) if codes else float(self.program.table[number, 0])


def _data_type(feature: Feature) -> str:
    labels = feature.categories
    if not feature.coded or any(isinstance(label, float) for label in labels):
        return "double"
    if all(isinstance(label, bool) for label in labels):
        # PMML4S reads a missing boolean as false, so boolean attributes become text: "true" or "false".
        return "boolean" if labels and feature.role is Role.TARGET else "string"
    if any(isinstance(label, str) for label in labels):
        return "string"
    return "integer" if max(abs(int(label)) for label in labels) <= MAX_JAVA_INTEGER else "double"


def _presence(name: str, *, known: bool, absent: bool) -> str:
    if known == absent:
        return "<True/>" if known else "<False/>"
    return f"<SimplePredicate{_attributes(field=name, operator='isNotMissing' if known else 'isMissing')}/>"


def _simple(feature: Feature, operator: str, value: str) -> str:
    return f"<SimplePredicate{_attributes(field=feature.name, operator=operator, value=value)}/>"


def _one_of(feature: Feature, codes: Sequence[int]) -> str:
    if not codes:  # false, but unknown for a missing value
        return _compound("and", [_simple(feature, "notEqual", label_text(label)) for label in feature.categories])
    texts = [label_text(feature.categories[code]) for code in codes]
    if len(texts) > 1 and all(map(PLAIN.fullmatch, texts)):
        array = f"<Array{_attributes(type=ARRAY_TYPES[_data_type(feature)], n=len(texts))}>{_ascii(' '.join(texts))}"
        field = _attributes(field=feature.name, booleanOperator="isIn")
        return f"<SimpleSetPredicate{field}>{array}</Array></SimpleSetPredicate>"
    return _compound("or", [_simple(feature, "equal", text) for text in texts])


def _compound(operator: str, predicates: Sequence[str]) -> str:
    if len(predicates) < 2:
        return predicates[0] if predicates else "<True/>"
    return f'<CompoundPredicate booleanOperator="{operator}">{"".join(predicates)}</CompoundPredicate>'


def _attributes(**values: str | float | None) -> str:
    """Return the attributes of an element that are not None. A number is written as its shortest exact text."""
    shown = (
        (name, value if isinstance(value, str) else repr(value)) for name, value in values.items() if value is not None
    )
    return "".join(f" {name}={_ascii(quoteattr(text, LINE_ENDS))}" for name, text in shown)


def _ascii(text: str) -> str:
    return text.encode("ascii", "xmlcharrefreplace").decode()
