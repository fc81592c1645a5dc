"""Operating points: a label is predicted if its share reaches a given probability, even if another share is larger.

The nodes and shares are the same, only the labels differ. So it is another model, which shares all else with the
original.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from espalier.data.labels import is_number, label_key
from espalier.errors import ConfigError, Fault
from espalier.model.model import Model, OperatingPoint
from espalier.model.rules import RuleList
from espalier.model.tree import cached_on_owner
from espalier.prediction.leaf_values import answer_table

MAX_CACHED: Final = 8
"""Operating points whose models are cached with a model."""
FIELDS: Final = ("label", "probability")


def operating_point_from_dict(document: object, classes: Sequence[Any]) -> OperatingPoint:
    """Read an operating point from its JSON form, ``{"label": …, "probability": …}``.

    Args:
        document: The JSON form.
        classes: Classes of the model.

    Raises:
        ConfigError: Every fault: a field that is missing or unknown, a label that is not a class, a probability that is
            not a number from 0 to 1.

    >>> operating_point_from_dict({"label": "yes", "probability": 0.3}, ("no", "yes")).code
    1
    """
    if not isinstance(document, dict):
        raise ConfigError([Fault("", "wrong_type", 'must be an object such as {"label": "yes", "probability": 0.3}')])
    faults = [
        Fault(f"/{name}", "unknown_field", f"legal: {', '.join(FIELDS)}") for name in document if name not in FIELDS
    ]
    faults += [Fault(f"/{name}", "required", "must be given") for name in FIELDS if name not in document]
    label: Any = document.get("label")
    probability: Any = document.get("probability")
    codes = {label_key(each): code for code, each in enumerate(classes)}
    code = codes.get(label_key(label), -1) if isinstance(label, str | bool | int | float) else -1
    if "label" in document and code < 0:
        legal = "must be one of the model's classes" if classes else "the model answers with a number: it has no labels"
        faults.append(Fault("/label", "unknown_value", legal))
    if "probability" in document and not (is_number(probability) and 0 <= probability <= 1):
        faults.append(Fault("/probability", "not_legal", "must be a number from 0 to 1"))
    ConfigError.raise_for(faults)
    return OperatingPoint(code, float(probability))


def with_operating_point(model: Model, point: OperatingPoint | None) -> Model:
    r"""Return a model that predicts a label if its share reaches a given probability.

    If the label's share reaches the probability, the answer is the label; otherwise it is the most probable other
    class, the first of equals. Shares, paths and leaves are the same.

    Args:
        model: The model.
        point: The label and its probability; None: as trained.

    Returns:
        `model` itself without a point; otherwise a model that is cached with `model`.

    Raises:
        ConfigError: The model has no such class.

    >>> import espalier
    >>> rows = "wind,play\nweak,yes\nweak,no\nweak,no\nstrong,no\nstrong,no\n"
    >>> model = espalier.train(espalier.dataset_from_csv(rows, target="play"), "id3")
    >>> point = operating_point_from_dict({"label": "yes", "probability": 0.3}, model.schema.classes)
    >>> [espalier.predict(each, [{"wind": "weak"}])[0].label for each in (model, with_operating_point(model, point))]
    ['no', 'yes']
    """
    if point is None:
        return model
    if not 0 <= point.code < len(model.schema.classes):
        raise ConfigError([Fault("/operating_point/label", "unknown_value", "must be one of the model's classes")])
    cached = _by_point(model)
    with_point = cached.get(point)
    if with_point is None:
        if len(cached) >= MAX_CACHED:
            cached.clear()
        with_point = cached[point] = _with_point(model, point)
    return with_point


@cached_on_owner
def _by_point(model: Model) -> dict[OperatingPoint, Model]:
    return {}


def _with_point(model: Model, point: OperatingPoint) -> Model:
    codes = point.decide_each(answer_table(model))
    if isinstance(model.body, RuleList):
        *rules, default = (
            replace(rule, value=code) for rule, code in zip(model.body.answers, codes.tolist(), strict=True)
        )
        return replace(model, body=replace(model.body, rules=tuple(rules), default=default), operating_point=point)
    codes.flags.writeable = False
    return replace(model, body=replace(model.body, value=codes), operating_point=point)
