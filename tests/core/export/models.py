"""Models to export: reference data sets × presets and ways of missing values, hostile names, thousands of leaves."""

import functools

import numpy as np

import espalier
from espalier import Feature, FeatureKind, Model, Role, Schema
from tests.core.model_trees import reference_data
from tests.core.planted import A, Ask, B, C, Cut, Leaf, plant

REFERENCE_MODELS = {
    "golf id3": ("weather_nominal", "id3", {}),
    "golf c45": ("golf_missing", "c45", {}),
    "labor j48": ("labor", "j48", {}),
    "labor spread": ("labor", "c45", {"missing": "spread"}),
    "labor surrogate": ("labor", "cart", {"missing": "surrogate", "nominal": "subset"}),
    "labor imputed": ("labor", "cart", {"missing": "imputed"}),
    "labor majority": ("labor", "c45", {"missing": "majority"}),
    "iris cart": ("iris", "cart", {}),
    "iris laplace": ("iris", "reptree", {"leaf_probability": "laplace"}),
    "drug200 cart": ("drug200", "cart", {}),
    "titanic c45": ("titanic", "c45", {}),
    "cpu m5": ("cpu", "m5", {}),
    "cpu smoothed": ("cpu", "cart", {"smoothing": 15.0}),
    "cpu fractional": ("cpu", "cart", {"missing": "fractional"}),
}
HOSTILE_NAMES = [
    "*/ int main(void) { return 1; } /*",
    "--> ]]> <!-- -->",
    "a \"quoted\" 'name' with \\ and `ticks` and [brackets]",
    "a\nline; DROP TABLE rows; --",
    "größe 木 👩‍👩‍👧‍👦 \u2028",
    "select",
    "__proto__",
    "class",
    "??/ trigraph ${x} %d {0} $tables",
    "'''",
    '"""',
]


@functools.cache
def reference_model(name: str) -> Model:
    data, preset, fields = REFERENCE_MODELS[name]
    return espalier.train(reference_data(data), preset, **fields)


def hostile_model() -> Model:
    """A tree that asks for each hostile name in turn, as attribute, category and class."""
    classes = tuple(HOSTILE_NAMES)
    schema = Schema(
        (
            *(Feature(f"{name}", FeatureKind.NOMINAL, categories=(name, f"{name}.")) for name in HOSTILE_NAMES[::2]),
            *(Feature(f"{name}", FeatureKind.NUMERIC) for name in HOSTILE_NAMES[1::2]),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, classes),
        )
    )
    root = Leaf(tuple(float(place == 0) for place in range(len(classes))))
    for place, feature in enumerate(schema.attributes):
        other = Leaf(tuple(float(each == place) for each in range(len(classes))))
        below = (root, other)
        root = Ask(place, (0, 1), below, 0) if feature.coded else Cut(place, 0.1 * place, below, 1)
    return plant(schema, root)


def dated_model() -> Model:
    """A tree that compares a number and a date. 0 is listed as a missing value, but the date of 0 seconds is known."""
    attributes = Feature("x", FeatureKind.NUMERIC), Feature("when", FeatureKind.DATETIME)
    target = Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b", "c"))
    schema = Schema((*attributes, target), missing_values=("?", "0"))
    return plant(schema, Cut(0, 0.5, (A, Cut(1, 0.5, (B, C), 1)), 1))


def alias_model() -> Model:
    """A tree that asks for the categories 1 and 2. The text 2.0, which could stand for 2, is listed as missing."""
    target = Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b", "c"))
    number = Feature("x", FeatureKind.NOMINAL, categories=("1", "2"))
    return plant(Schema((number, target), missing_values=("?", "2.0")), Ask(0, (0, 1), (A, B), 0))


@functools.cache
def large_model(n_leaves: int = 5_000) -> Model:
    """A tree of 5,000 leaves over two numbers and a category, with irregular thresholds."""
    draw = np.random.default_rng(7)
    table = {
        "x": draw.normal(size=20_000),
        "z": draw.normal(size=20_000) * 1e-7,
        "k": draw.choice(["p", "q", "r"], 20_000),
        "y": draw.choice(["a", "b"], 20_000),
    }
    columns = {name: column.tolist() for name, column in table.items()}
    model = espalier.train(espalier.dataset_from_columns(columns, target="y"), "cart", max_leaf_nodes=n_leaves)
    assert model.tree.n_leaves == n_leaves
    return model
