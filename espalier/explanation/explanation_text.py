"""Explanations as text."""

import math

from espalier.explanation.equation_text import column_text
from espalier.explanation.explain import Explanation
from espalier.explanation.linear_terms import LinearAnswer
from espalier.explanation.steps import passed_over_text, step_text
from espalier.model.texts import label_line, number_text, one_line, share_text
from espalier.prediction.answers import Prediction, format_answer


def render_explanation(explanation: Explanation) -> str:
    """Return an explanation as text, one line per test."""
    prediction = explanation.prediction
    lines = []
    for visit, path in zip(prediction.visits, explanation.paths, strict=True):
        if len(explanation.paths) > 1:
            lines.append(f"with weight {share_text(visit.weight)}:")
        lines += [f"  {step_text(step)}" for step in path]
        if not path:
            by_default = explanation.rule.startswith("otherwise ")
            lines.append("  no rule holds" if by_default else "  nothing is tested: one leaf, or a rule for every row")
    left_out = prediction.n_visits - len(prediction.visits)
    if left_out:
        lighter = 1 - math.fsum(visit.weight for visit in prediction.visits)
        lines.append(f"with weight {share_text(lighter)} in all: {left_out} more paths, none heavier than those above")
    lines += [f"  not {passed_over_text(rule)}" for rule in explanation.passed_over or ()]
    lines.append(f"answer: {_answer_text(prediction)}")
    lines.append(f"because: {explanation.rule}")
    for reason in explanation.reasons or ():
        fewer = "" if reason.minimal else " (fewer may be enough)"
        lines.append(f"whatever the other attributes are{fewer}: {reason.text}")
    lines += _linear_lines(explanation.linear) if explanation.linear is not None else []
    for name, flagged in (("missing", prediction.row.missing), ("never seen in training", prediction.row.unseen)):
        if flagged:
            lines.append(f"{name}: {', '.join(map(one_line, flagged))}")
    return "\n".join(lines) + "\n"


def _linear_lines(answer: LinearAnswer) -> list[str]:
    lines = [f"sum: {number_text(answer.intercept)}"] if answer.terms else []
    for term in answer.terms:
        sign, size = "-" if term.contribution < 0 else "+", number_text(abs(term.contribution))
        column = f"{number_text(term.column)} ({column_text(term.attribute, term.categories)})"
        column += "" if term.imputed is None else f"  (the value is {term.reason}; an imputed value replaces it)"
        lines.append(f"  {sign} {size} = {number_text(term.coefficient)} × {column}")
    for place, step in enumerate(answer.smoothing):
        node = f"node {step.node} (weight {number_text(step.weight)}) predicts {number_text(step.value)}"
        share = f"{step.share:.1%} of the answer"
        lines.append(
            f"smoothing: {node}, {share}" if place == 0 else f"  then {node}, {share}: {number_text(step.smoothed)}"
        )
    return lines


def _answer_text(prediction: Prediction) -> str:
    if prediction.value is not None:
        support = number_text(prediction.support)
        return f"{number_text(prediction.value)} ± {prediction.std:.4g} (from training weight {support})"
    shares = ", ".join(f"{label_line(label)} {share_text(share)}" for label, share in prediction.distribution)
    return f"{format_answer(prediction)} ({shares}; from training weight {number_text(prediction.support)})"
