"""Explain predictions: the path, its merged conditions, the rule sentence, and details on request."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from espalier.errors import ConfigError, Fault, RowError
from espalier.explanation.contributions import contributions_of
from espalier.explanation.costs import PathCost, cost_of
from espalier.explanation.linear_terms import LinearAnswer, linear_answer
from espalier.explanation.row_flow import attributes_read, row_flow
from espalier.explanation.rule_path import looked_at, passed_over, rule_sentence, rule_steps
from espalier.explanation.shap import ShapleyValues, shapley_values
from espalier.explanation.steps import DecisionStep, PassedOver, own_values
from espalier.explanation.sufficient_reasons import SufficientReason, sufficient_reasons
from espalier.explanation.tree_path import rule_of_tree, tree_steps
from espalier.model.model import Model
from espalier.model.rules import Condition
from espalier.model.texts import condition_text
from espalier.prediction.answers import Prediction
from espalier.prediction.encode_rows import EncodedRow, encode_each, encode_rows, rows_to_predict
from espalier.prediction.missing_strategies import with_missing_strategy
from espalier.prediction.predict import limited_answers, predictor_for
from espalier.prediction.rule_predictor import RulePredictor
from espalier.prediction.tree_predictor import TreePredictor
from espalier.progress import Progress

DETAILS: Final = ("path", "full")
MAX_CATEGORIES: Final = 100
"""Maximum number of categories of a test or condition in the JSON form; with the detail ``full``, all are listed."""


class Explanation(NamedTuple):
    """A prediction with its explanation.

    Attributes:
        prediction: The prediction.
        paths: The steps of each path in ``prediction.visits``, in that order; one path unless the row is divided.
        conditions: For a tree, the tests of the heaviest path, merged into one condition per attribute and ordered by
            the attribute's first test. For a list of rules, the conditions of the rule that fired.
        rule: The conditions and the prediction as a sentence.
        contributions: By attribute, the sum of the changes that its tests cause in the label's share or, for a
            regression, in the predicted number (Saabas 2014). Only with ``full``, for a tree.
        baseline: The label's share (or the number) at the root. Baseline and contributions add up to the label's share
            (or the number) in the answer. None without contributions.
        passed_over: Only with ``full``, for a list of rules: the rules before the one that fired, in order, each with
            the first of its conditions that does not hold.
        shap: Shapley values (path-dependent, Lundberg et al. 2018) and a baseline. Together they add up to the label's
            share (or the number). Only with ``full``, for a tree without linear leaves.
        reasons: Only with ``full``, for a tree: attributes whose values alone force the answer.
        cost: Only with ``full``: the cost of the attributes that were read, each counted once.
        linear: The sum that gives the number, if one linear or smoothed leaf answers; else None. For a linear leaf, the
            baseline is the intercept of this sum, and the contributions are those of the terms.
        detail: ``path`` or ``full``, as requested.
    """

    prediction: Prediction
    paths: tuple[tuple[DecisionStep, ...], ...]
    conditions: tuple[Condition, ...]
    rule: str
    contributions: Mapping[str, float] | None = None
    baseline: float | None = None
    passed_over: tuple[PassedOver, ...] | None = None
    linear: LinearAnswer | None = None
    shap: ShapleyValues | None = None
    reasons: tuple[SufficientReason, ...] | None = None
    cost: PathCost | None = None
    detail: str = "path"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form. It lists at most `MAX_CATEGORIES` categories of a test; with ``full``, all."""
        most = None if self.detail == "full" else MAX_CATEGORIES
        document = self.prediction.to_dict()
        document["path"] = [step.to_dict(most) for step in self.paths[0]]
        if len(self.paths) > 1:
            document["paths"] = [
                {"weight": visit.weight, "leaf": visit.leaf, "path": [step.to_dict(most) for step in path]}
                for visit, path in zip(self.prediction.visits, self.paths, strict=True)
            ]
            document["n_paths"] = self.prediction.n_visits
        document["conditions"] = [condition.to_dict(most) for condition in self.conditions]
        document["rule"] = self.rule
        if most is not None:
            for condition in self.conditions:
                if len(condition.categories or ()) > most:
                    whole, short = condition_text(condition), condition_text(condition, most)
                    document["rule"] = document["rule"].replace(whole, short)
        if self.contributions is not None:
            document |= {"baseline": self.baseline, "contributions": dict(self.contributions)}
        for name in ("shap", "reasons", "cost", "linear", "passed_over"):
            part = getattr(self, name)
            if part is not None:
                document[name] = [each.to_dict() for each in part] if isinstance(part, tuple) else part.to_dict()
        return document


def explain(
    model: Model,
    rows: Any,
    *,
    detail: str = "path",
    missing: str | None = None,
    most_steps: int | None = None,
    progress: Progress | None = None,
) -> list[Explanation]:
    """Predict each row and explain the prediction.

    Args:
        model: The model.
        rows: A list of rows, a `Dataset` or a table, as in `espalier.predict`.
        detail: ``path`` or ``full``. For a tree, ``full`` adds contributions, Shapley values, sufficient reasons and
            the cost. For a list of rules, it adds the rules before the one that fired, and the cost.
        missing: The strategy for missing values, as in `espalier.predict`.
        most_steps: Maximum number of steps, added up over the rows that take several branches; None for no limit.
        progress: Its share is updated after each row; another thread may stop it.

    Raises:
        RowError, DataError: As in `espalier.predict`.
        ConfigError: An unknown `detail`, or a strategy for missing values that the model cannot use.
        TooLarge: The rows that take several branches have more than `most_steps` steps together.
        Cancelled: `progress` was stopped.
    """
    progress = progress or Progress()
    explainer = _Explainer(model, detail, missing, most_steps)
    progress.begin("explaining")
    encoded = encode_rows(explainer.predictor.encode, rows_to_predict(model.schema, rows))
    return [explainer.explain(row) for row in progress.each(encoded)]


def explain_each(
    model: Model, rows: Any, *, detail: str = "path", missing: str | None = None, most_steps: int | None = None
) -> list[Explanation | RowError]:
    """Explain each row. For an invalid row, return a `RowError`: path "" if it is no object, else ``/{attribute}``.

    The arguments are those of `explain`, without `progress`.

    Raises:
        RowError: One row is given instead of a list.
        ConfigError, DataError, TooLarge: As in `explain`.
    """
    explainer = _Explainer(model, detail, missing, most_steps)
    encoded = encode_each(explainer.predictor.encode, rows_to_predict(model.schema, rows))
    return [row if isinstance(row, RowError) else explainer.explain(row) for row in encoded]


class _Explainer:
    """Explains encoded rows, with the limit of `limited_answers` on steps."""

    def __init__(self, model: Model, detail: str, missing: str | None, most_steps: int | None) -> None:
        if detail not in DETAILS:
            raise ConfigError([Fault("/detail", "unknown_value", f"must be one of {', '.join(DETAILS)}")])
        self.model = with_missing_strategy(model, missing)
        self.predictor = predictor_for(self.model)
        self._detail, self._answer = detail, limited_answers(self.predictor, most_steps, steps=True)

    def explain(self, row: EncodedRow) -> Explanation:
        prediction = self._answer(row)
        if isinstance(self.predictor, RulePredictor):
            return _by_rule(self.model, prediction, self._detail)
        return _by_tree(self.model, self.predictor, prediction, self._detail)


def rule_of(model: Model, prediction: Prediction) -> str:
    """Return the sentence that explains a prediction, like `Explanation.rule`."""
    predictor = predictor_for(model)
    if isinstance(predictor, RulePredictor):
        return rule_sentence(model, prediction.leaf)
    return rule_of_tree(model, predictor, prediction)[1]


def _by_tree(model: Model, predictor: TreePredictor, prediction: Prediction, detail: str) -> Explanation:
    conditions, rule = rule_of_tree(model, predictor, prediction)
    row = prediction.row
    linear = None if predictor.smoothing is None else linear_answer(model, predictor.smoothing, prediction)
    explanation = Explanation(
        prediction=prediction,
        paths=tuple([own_values(tree_steps(model, predictor, row.values, visit), row) for visit in prediction.visits]),
        conditions=conditions,
        rule=rule,
        linear=linear,
    )
    if detail != "full":
        return explanation
    added, baseline = contributions_of(model, predictor, prediction, linear)
    flow = row_flow(model, predictor, row.values)
    tested = attributes_read(model.tree, flow, model.tree.outside(np.flatnonzero(flow.share <= 0)))
    terms = () if predictor.linear is None else predictor.linear.attributes_read(prediction.leaf)
    place = prediction.code if predictor.classes else None
    return explanation._replace(
        detail=detail,
        contributions=added,
        baseline=baseline,
        shap=shapley_values(model, predictor, flow, place=place),
        reasons=sufficient_reasons(model, predictor, flow, prediction, tested=tested),
        cost=cost_of(model, (*tested, *terms)),
    )


def _by_rule(model: Model, prediction: Prediction, detail: str) -> Explanation:
    return Explanation(
        prediction=prediction,
        paths=(own_values(rule_steps(model, prediction), prediction.row),),
        conditions=model.rules.answers[prediction.leaf].conditions,
        rule=rule_sentence(model, prediction.leaf),
        passed_over=passed_over(model, prediction) if detail == "full" else None,
        cost=cost_of(model, looked_at(model, prediction)) if detail == "full" else None,
        detail=detail,
    )
