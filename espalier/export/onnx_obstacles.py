"""Why a model cannot be expressed in ONNX; apart from the graph, so that the library is needed only to write one."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final

from espalier.export.cases import flat_obstacle
from espalier.export.obstacles import name_obstacle, number_obstacle, type_obstacle
from espalier.export.program import ANSWER, Program
from espalier.model.model import Model
from espalier.model.rules import RuleList

OUTPUTS: Final = {True: ("label", "probabilities", "leaf"), False: ("value", "leaf")}
"""Names of the outputs of a classification, and of a regression."""
MAX_TESTS: Final = 2_000
"""Tests on a path: onnxruntime reads a tree by recursion, and crashes at 30,000 of them on a stack of 8 MB."""


def onnx_obstacle(model: Model, program: Program) -> str | None:
    """Return why a model cannot be expressed exactly; None if it can."""
    if find_spec("onnx") is None:
        return "it needs onnx: pip install 'espalier[onnx]'"
    reasons = (*_of_model(model), number_obstacle(model, "ONNX"), flat_obstacle(model, program))
    return next(filter(None, reasons), None) or _depth_obstacle(model, program)


def _of_model(model: Model) -> Iterator[str | None]:
    schema = model.schema
    if not schema.attributes:
        yield "it has no attributes, and a graph without inputs answers no rows"
    for feature in schema.attributes:
        yield name_obstacle(feature, OUTPUTS[bool(schema.classes)])
        yield type_obstacle(feature, "and an input has one type")
    if len(set(map(type, schema.classes))) > 1:
        yield "the classes are of different types, and an output has one type"


def _depth_obstacle(model: Model, program: Program) -> str | None:
    if isinstance(model.body, RuleList):
        deepest = 3 * max((len(rule.conditions) for rule in model.body.rules), default=0)
    else:
        depths = [0] * len(program.steps)
        for step, depth in zip(program.steps, depths, strict=True):  # what follows from a step comes after it
            targets = {*step.targets, step.absent} if step.kind != ANSWER else set()
            for target in targets:
                depths[target] = depth + (len(targets) - 1).bit_length()
        deepest = max(depths)
    return f"a path has {deepest} tests; runtimes take {MAX_TESTS}" if deepest > MAX_TESTS else None
