"""Write a model as an ONNX graph. Inputs: the attributes. Outputs: label, probabilities and leaf, or value and leaf.

Every input becomes numbers: a category becomes its code; a missing value or an unseen category becomes NaN. A tree
ensemble of doubles finds a row's *place*, the index of its answer. The outputs are taken from tables at this place::

    wind ── LabelEncoder ──┐                                        ┌─ Gather ── label
    temperature ───────────┴─ Concat ── TreeEnsemble ── place ──────┼─ Gather ── probabilities
                                                                    └─ Gather ── leaf

A tree becomes one tree of the ensemble. A list of rules becomes one tree per rule. If the rule holds, the tree's value
is the rule's place, else the default's place. The least of these values is the place of the row's answer.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from espalier.data.labels import Label
from espalier.data.schema import Feature
from espalier.export.obstacles import RESERVED, type_of
from espalier.export.onnx_trees import MIN, SUM, Ensemble
from espalier.export.program import Exported, LinearLeaf, Program
from espalier.export.tables import class_texts, imputed_values, known_codes, missing_numbers
from espalier.model.linear import MAX_VALUE
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.version import __version__

OPSETS: Final = {"": 21, "ai.onnx.ml": 5}
IR_VERSION: Final = 12
"""onnxruntime before 1.24, which would mix up sets of categories and read roots as leaves, refuses this version."""
ROWS: Final = "rows"
"""Name of the first dimension of each input and output."""
LABEL_TYPES: Final = {"text": np.dtype(object), "truth value": np.dtype(bool)}


def onnx_graph(given: Exported) -> bytes:
    """Return an ONNX file."""
    model, program = given.model, given.program
    graph, attributes = _Graph(), model.schema.attributes
    for feature in attributes:
        graph.inputs.append(_info(feature.name, _input_type(feature), (ROWS, 1)))
    columns = zip(attributes, known_codes(model), missing_numbers(model), strict=True)
    values = [_encoded(graph, feature, known, missing) for feature, known, missing in columns]
    place = _place(graph, model, program, graph.add("Concat", values, axis=1))
    numbers = list(program.answered)
    if model.schema.classes:
        classes = _labels(model)
        labels = classes[[program.codes[number] for number in numbers]]
        graph.output("label", graph.gathered(labels, place), helper.np_dtype_to_tensor_dtype(classes.dtype))
        shares = graph.gathered(program.table[numbers], place)
        graph.output("probabilities", shares, TensorProto.DOUBLE, len(classes))
    else:
        graph.output("value", _value(graph, model, program, values, place), TensorProto.DOUBLE)
    graph.output("leaf", graph.gathered(np.array(numbers, np.int64), place), TensorProto.INT64)
    return _file(model, graph, given.notes)


class _Graph:
    """Nodes, constants, inputs and outputs of a graph. Intermediate results are named by consecutive numbers."""

    def __init__(self) -> None:
        self.nodes = list[NodeProto]()
        self.constants = list[TensorProto]()
        self.inputs, self.outputs = list[ValueInfoProto](), list[ValueInfoProto]()
        self._n_names = 0

    def add(self, operator: str, inputs: Sequence[str], *, domain: str = "", **attributes: Any) -> str:
        """Append a node with one output. Return the output's name."""
        return self.add_many(operator, inputs, 1, domain=domain, **attributes)[0]

    def add_many(self, operator: str, inputs: Sequence[str], n_outputs: int, **attributes: Any) -> list[str]:
        """Append a node. Return the names of its outputs."""
        names = [self._name() for _ in range(n_outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names

    def constant(self, array: npt.NDArray[Any]) -> str:
        """Add a constant. Return its name."""
        name = self._name()
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def gathered(self, table: npt.NDArray[Any], place: str) -> str:
        """Add a node that looks up the row of `table` at each index in the output `place`. Return its output's name."""
        return self.add("Gather", [self.constant(table), place])

    def output(self, name: str, value: str, kind: int, *width: int) -> None:
        """Declare `value` as the output `name`. `width`: its number of columns; omitted for a vector."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(_info(name, kind, (ROWS, *width)))

    def _name(self) -> str:
        self._n_names += 1
        return f"{RESERVED}{self._n_names}"


def _info(name: str, kind: int, shape: tuple[str | int, ...]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _input_type(feature: Feature) -> int:
    is_text = feature.coded and (not feature.categories or isinstance(feature.categories[0], str))
    return int(TensorProto.STRING if is_text else TensorProto.DOUBLE)


def _encoded(graph: _Graph, feature: Feature, known: Mapping[tuple[str, Label], int], missing: Sequence[float]) -> str:
    """Add an attribute as numbers or codes, NaN for a missing value or an unseen category. Return the column's name."""
    if not feature.coded:
        if not missing:
            return feature.name
        absent = _looked_up(graph, feature.name, list(missing), [math.nan] * len(missing), 0.0)
        return graph.add("Add", [feature.name, absent])
    is_text = _input_type(feature) == TensorProto.STRING
    codes = {
        label if is_text else float(label): float(code)
        for (_, label), code in known.items()
        if isinstance(label, str) == is_text
    }
    codes = codes or {"": math.nan}
    return _looked_up(graph, feature.name, list(codes), list(codes.values()), math.nan)


def _looked_up(graph: _Graph, column: str, keys: list[Any], values: list[float], default: float) -> str:
    """Add a copy of `column`: each of `keys` becomes its value, any other cell `default`. Return the copy's name."""
    is_text = isinstance(keys[0], str)
    return graph.add(
        "LabelEncoder",
        [column],
        domain="ai.onnx.ml",
        keys_tensor=numpy_helper.from_array(np.array(keys, object if is_text else np.float64), "keys"),
        values_tensor=numpy_helper.from_array(np.array(values), "values"),
        default_tensor=numpy_helper.from_array(np.array([default]), "default"),
    )


def _place(graph: _Graph, model: Model, program: Program, values: str) -> str:
    """Add each row's place, the index of its answer in ``program.answered``, int64 (rows). Return the output's name."""
    is_list = isinstance(model.body, RuleList)
    ensemble = Ensemble.of_rules(program) if is_list else Ensemble.of_tree(program)
    attributes = ensemble.attributes(aggregate=MIN if is_list else SUM)
    leaves = graph.add("TreeEnsemble", [values], domain="ai.onnx.ml", **attributes)
    flat = graph.add("Reshape", [leaves, graph.constant(np.array([-1], np.int64))])
    return graph.add("Cast", [flat], to=TensorProto.INT64)


def _labels(model: Model) -> npt.NDArray[Any]:
    classes = model.schema.classes
    dtype = LABEL_TYPES.get(type_of(classes[0]))
    return np.array(classes, dtype=dtype)


def _value(graph: _Graph, model: Model, program: Program, values: list[str], place: str) -> str:
    """Add the values of a regression, float64 (rows). Return their name."""
    if not program.linear:
        return graph.gathered(program.table[list(program.answered), 0], place)
    leaves = [program.linear[number] for number in program.answered]
    columns = {(feature, upper): at for at, (feature, upper) in enumerate(_columns(leaves))}
    n_terms = max(len(leaf.terms) for leaf in leaves)
    # Leaves with fewer terms are padded with zeros. Terms are added in the model's order, so no bit of a sum differs.
    chosen = np.zeros((len(leaves), n_terms), np.int64)
    coefficients = np.zeros((len(leaves), n_terms))
    for at, leaf in enumerate(leaves):
        for term, (feature, upper, coefficient) in enumerate(leaf.terms):
            chosen[at, term], coefficients[at, term] = columns[feature, upper], coefficient
    total = graph.gathered(np.array([[leaf.intercept] for leaf in leaves]), place)
    if n_terms:
        imputed = imputed_values(model)
        table = [_column(graph, values[feature], imputed[feature], upper) for feature, upper in columns]
        cells = graph.add("Concat", table, axis=1)
        cells = graph.add("GatherElements", [cells, graph.gathered(chosen, place)], axis=1)
        products = graph.add("Mul", [graph.gathered(coefficients, place), cells])
        for product in graph.add_many("Split", [products], n_terms, axis=1, num_outputs=n_terms):
            total = graph.add("Add", [total, product])
    return graph.add("Reshape", [_limited(graph, total), graph.constant(np.array([-1], np.int64))])


def _columns(leaves: Sequence[LinearLeaf]) -> list[tuple[int, frozenset[int] | None]]:
    return list(dict.fromkeys((feature, upper) for leaf in leaves for feature, upper, _ in leaf.terms))


def _column(graph: _Graph, value: str, imputed: float, upper: frozenset[int] | None) -> str:
    """Add the column of a term, float64 (rows, 1). Return its name."""
    known = graph.add("Where", [graph.add("IsNaN", [value]), graph.constant(np.array(imputed)), value])
    if upper is None:
        return _limited(graph, known)
    return _looked_up(graph, known, [float(code) for code in sorted(upper)], [1.0] * len(upper), 0.0)


def _limited(graph: _Graph, value: str) -> str:
    return graph.add("Clip", [value, graph.constant(np.array(-MAX_VALUE)), graph.constant(np.array(MAX_VALUE))])


def _file(model: Model, graph: _Graph, notes: tuple[str, ...]) -> bytes:
    proto: ModelProto = helper.make_model(
        helper.make_graph(graph.nodes, "espalier", graph.inputs, graph.outputs, graph.constants),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS.items()],
        ir_version=IR_VERSION,
        producer_name="espalier",
        producer_version=__version__,
        doc_string="\n".join(notes),
    )
    if model.schema.classes:
        helper.set_model_props(proto, {"classes": json.dumps(class_texts(model))})
    return bytes(proto.SerializeToString(deterministic=True))
