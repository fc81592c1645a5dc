"""Models that are exported as PMML, by name: what the judges of another environment answer all at once."""

import functools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from hypothesis import given, settings, strategies as st

import espalier
from espalier import Feature, FeatureKind, Model, Role, Schema
from tests.core.export.models import REFERENCE_MODELS, hostile_model, large_model, reference_model
from tests.core.planted import MIXED, NUMBERS, Ask, Cut, Known, Leaf, plant, roots

SPACES = ("", " ", "a", "a ", " a", "a b", 'a "b"', "a\\b", "a\tb", "a\nb", "7", "TRUE", "a,b")
LABELS = {
    "spaces": SPACES,
    "integers": (7, -1, 0),
    "doubles": (0.5, 1e-7, 1e300),
    "large": (2**53, 1, 2),
    "truth": (False, True),
}


def exportable(model: Model) -> Model:
    """Return the model, or where PMML cannot divide a row, that which sends it down the heaviest branch."""
    if espalier.applicable_exports(model)["pmml"] is None:
        return model
    return espalier.with_missing_strategy(model, "majority")


def typed_model(labels: tuple[Any, ...]) -> Model:
    """A tree that asks for categories of one type, with classes of the same type."""
    schema = Schema(
        (
            Feature("x", FeatureKind.NOMINAL, categories=labels),
            Feature("z", FeatureKind.ORDINAL, categories=labels),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, labels),
        )
    )
    leaves = [Leaf(tuple(float(place == each) for each in range(len(labels)))) for place in range(len(labels))]
    below = Cut(1, 0.5, (leaves[0], leaves[-1]), 1)
    return plant(schema, Ask(0, tuple(range(len(labels))), (below, *leaves[1:]), 0))


def presence_model() -> Model:
    """A tree that asks whether values are there, of numbers and of categories, and numbers that mean missing."""
    a, b, c = (Leaf(tuple(float(each == place) + 0.25 for each in range(3))) for place in range(3))
    schema = Schema(MIXED.features, missing_values=("-999", "?"))
    root = Known(0, (Cut(0, -0.0, (a, b), 1), Known(1, (Ask(1, (0, -1, 1), (c, a), 1), Known(2, (b, c))))))
    return plant(schema, root)


@functools.cache
def drawn_models() -> list[Model]:
    """Trees that hypothesis draws: every test, categories that a node did not see, all ways of missing values."""
    drawn = list[Model]()

    @settings(max_examples=60, database=None, derandomize=True)
    @given(data=st.data(), schema=st.sampled_from([MIXED, NUMBERS]), laplace=st.booleans(), stops=st.booleans())
    def draw(data, schema, laplace, stops) -> None:
        fields = {"leaf_probability": "laplace"} if laplace and schema.classes else {}
        model = plant(schema, data.draw(roots(schema)), **fields)
        drawn.append(espalier.with_missing_strategy(model, "last_prediction") if stops else exportable(model))

    draw()
    return drawn


def _model_makers() -> Iterator[tuple[str, Callable[[], Model]]]:
    for name in REFERENCE_MODELS:
        if name != "cpu m5":
            yield name, partial(lambda name: exportable(reference_model(name)), name)
    for name in ("golf c45", "labor j48", "titanic c45", "cpu fractional"):
        stops = partial(lambda name: espalier.with_missing_strategy(reference_model(name), "last_prediction"), name)
        yield f"{name} stops", stops
    for name in ("labor j48", "labor imputed", "iris cart", "titanic c45", "cpu smoothed"):
        yield f"{name} rules", partial(lambda name: espalier.extract_rules(reference_model(name)), name)
    for name, labels in LABELS.items():
        yield name, partial(typed_model, labels)
    yield from {"hostile names": hostile_model, "presence": presence_model, "5,000 leaves": large_model}.items()


NAMED_MODELS: Final[Mapping[str, Callable[[], Model]]] = dict(_model_makers())
"""Models by name, made on demand."""


@functools.cache
def pmml_models() -> dict[str, Model]:
    """Every model that the judges answer."""
    drawn = {f"drawn {place}": model for place, model in enumerate(drawn_models())}
    return {name: make() for name, make in NAMED_MODELS.items()} | drawn
