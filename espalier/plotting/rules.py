"""Rules as sentences, as JSON, and in the notation of logic."""

from collections.abc import Iterator, Sequence
from typing import Any

from espalier.data.labels import Label
from espalier.data.schema import FeatureKind
from espalier.errors import NotApplicable
from espalier.explanation.branch_and_leaf_text import figures_text
from espalier.explanation.rule_path import rule_sentence
from espalier.model.model import Model
from espalier.model.rules import ClassDescription, Condition, Rule
from espalier.model.texts import category_text, condition_text, format_rule, label_line, name_text, share_text
from espalier.prediction.answers import LeafValue, format_answer
from espalier.prediction.rule_predictor import rule_predictor
from espalier.rules.extract import class_dnf, extract_rules


def to_logic(model: Model, label: Label | None = None) -> str:
    """Return the rules in the notation of logic.

    A class is a disjunction of conjunctions. If the other classes together need fewer conjunctions, a second line
    negates their disjunction. For a regression or an ordered list of rules, each line is a rule.

    Args:
        model: The model.
        label: The class to write; None: all classes.

    Raises:
        NotApplicable: The leaves are linear; or, with `label`, the model is a regression or an ordered list of rules.
        ConfigError: There is no such class.

    >>> from espalier import dataset_from_rows, train
    >>> rows = [{"wind": wind, "play": play} for wind, play in [("weak", "yes"), ("weak", "yes"), ("strong", "no")]]
    >>> print(to_logic(train(dataset_from_rows(rows, target="play"), "id3"), "yes"), end="")
    yes ⇔ wind = weak
    """
    return "\n".join(logic_lines(model, label)) + "\n"


def logic_lines(model: Model, label: Label | None) -> Iterator[str]:
    """Yield the lines of `to_logic`."""
    if label is not None:
        yield from _class_lines(class_dnf(model, label))
        return
    model = extract_rules(model)
    rules = model.rules
    if rules.exclusive and model.schema.classes:
        for known in model.schema.classes:
            yield from _class_lines(class_dnf(model, known))
        return
    answers = rule_predictor(model).answers
    for number, rule in enumerate(rules.rules):
        yield f"{_conjunction(rule.conditions, alone=True)} → {format_answer(answers[number])}"
    yield f"otherwise → {format_answer(answers[-1])}"


def class_sentences(model: Model, label: Label) -> tuple[str, ...]:
    """Return the conjunctions of `class_dnf` as sentences, such as ``if Outlook is Overcast then Yes``.

    Raises:
        NotApplicable: The model is a regression, or an ordered list of rules.
        ConfigError: There is no such class.
    """
    description = class_dnf(model, label)
    return tuple(format_rule(conditions, label_line(description.label)) for conditions in description.conjunctions)


def rules_to_text(model: Model) -> str:
    """Return a list of rules as sentences, each with the weight and the errors of the training rows that it answers.

    ``rule 0: if Outlook is Overcast then Yes (4)`` has no errors. Last is the default, ``otherwise Yes (2/1)``: weight
    2, errors 1. A default of weight 0 has no figures. A regression has standard deviations instead of errors. Pruned
    rules have an estimate: accuracy or mean squared error on held-out rows, or a lower limit of training accuracy.
    """
    rules, answers = model.rules, rule_predictor(model).answers
    figure = "accuracy" if model.task == "classification" else "mean squared error"
    if model.pruning is not None and model.pruning.get("estimate") == "pessimistic":
        figure = "pessimistic accuracy"
    lines = []
    for number, rule in enumerate(rules.rules):
        placed = "" if rule.estimate is None else f"  [{figure} {share_text(rule.estimate)}]"
        lines.append(f"rule {number}: {rule_sentence(model, number)} ({_counts(rule, answers[number])}){placed}")
    default = f" ({_counts(rules.default, answers[-1])})" if rules.default.weight > 0 else ""
    return "\n".join([*lines, f"{rule_sentence(model, rules.n_rules)}{default}"]) + "\n"


def rules_to_dict(model: Model) -> dict[str, Any]:
    """Return the rules of a model as JSON, each with its sentence. Raise `NotApplicable` if the leaves are linear."""
    model = extract_rules(model)
    rules, answers = model.rules, rule_predictor(model).answers
    return {
        "task": model.task,
        "exclusive": rules.exclusive,
        "n_rules": rules.n_rules,
        "n_conditions": rules.n_conditions,
        "notes": list(model.notes),
        "rules": [
            {
                "number": number,
                "conditions": [condition.to_dict() for condition in rule.conditions],
                **_answer_dict(rule, answers[number]),
                "estimate": rule.estimate,
                "text": rule_sentence(model, number),
            }
            for number, rule in enumerate(rules.rules)
        ],
        "default": {**_answer_dict(rules.default, answers[-1]), "text": rule_sentence(model, rules.n_rules)},
    }


def rule_texts(model: Model) -> Iterator[tuple[str, str]]:
    """Yield the conditions and the answer of each rule in a list, the default last, as texts of a flowchart."""
    for rule, answer in zip(model.rules.answers, rule_predictor(model).answers, strict=True):
        conditions = " and ".join(condition_text(condition) for condition in rule.conditions) or "always"
        yield conditions, f"{format_answer(answer)} ({_counts(rule, answer)})"


def check_whole_list(node: int, depth: int | None) -> None:
    """Raise `NotApplicable` if only a part of a list of rules is to be shown."""
    if node != 0 or depth is not None:
        raise NotApplicable("a list of rules has neither nodes nor depth: it is shown whole")


def _class_lines(description: ClassDescription) -> Iterator[str]:
    name = label_line(description.label)
    yield f"{name} ⇔ {_disjunction(description.conjunctions)}"
    if 0 < len(description.excluded) < len(description.conjunctions):
        yield f"{' ' * len(name)} ⇔ ¬({_disjunction(description.excluded)})"


def _disjunction(conjunctions: Sequence[Sequence[Condition]]) -> str:
    if not conjunctions:
        return "⊥"
    return " ∨ ".join(_conjunction(each, alone=len(conjunctions) == 1) for each in conjunctions)


def _conjunction(conditions: Sequence[Condition], *, alone: bool) -> str:
    text = " ∧ ".join(_literal(condition) for condition in conditions) or "⊤"
    return text if alone else f"({text})"


def _literal(condition: Condition) -> str:
    """Return one condition as text; for a boolean attribute, only its name, ``sold`` or ``¬sold``."""
    feature, labels = condition.attribute, condition.categories
    name = name_text(feature)
    if labels is not None and len(labels) == 1:
        if feature.kind is FeatureKind.BOOLEAN and isinstance(labels[0], bool):
            return name if labels[0] else f"¬{name}"
        return f"{name} = {category_text(labels[0])}"
    if labels is not None:
        texts = map(category_text, labels)
        members = (f'"{text}"' if "," in text and not text.startswith('"') else text for text in texts)
        return f"{name} ∈ {{{', '.join(members)}}}"
    return condition_text(condition)


def _counts(rule: Rule, answer: LeafValue) -> str:
    return figures_text(answer, rule.weight, rule.stats)


def _answer_dict(rule: Rule, answer: LeafValue) -> dict[str, Any]:
    if answer.value is not None:
        return {"value": answer.value, "std": answer.std, "weight": rule.weight}
    return {"label": answer.label, "weight": rule.weight, "stats": list(rule.stats), "confidence": answer.confidence}
