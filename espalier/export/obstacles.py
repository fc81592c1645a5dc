"""Why a model cannot be expressed in a format: names, types, numbers that become equal, or limits of SQL and ONNX.

A function ``…_obstacle`` returns the reason, or None if there is none. `sql_obstacle` and `onnx_obstacle` are here, not
in the modules that write the files: only these modules import sqlglot or onnx.
"""

from collections.abc import Collection, Iterable, Iterator
from importlib.util import find_spec
from typing import Final

from espalier.data.labels import Label, category_codes
from espalier.data.schema import Feature, FeatureKind
from espalier.export.cases import flat_obstacle
from espalier.export.program import ANSWER, Program
from espalier.model.model import Model
from espalier.model.rules import RuleList

RESERVED: Final = "espalier_"
"""Prefix of the columns of predictions and intermediate results."""
OUTPUTS: Final = {True: ("label", "probabilities", "leaf"), False: ("value", "leaf")}
"""Names of the outputs, by whether the model is a classification."""
IGNORES_CASE: Final = frozenset({"bigquery", "duckdb", "mysql", "spark", "sqlite", "tsql"})
"""Dialects that ignore case in the names of columns, even in quoted ones."""
MAX_TESTS: Final = 2_000
"""Maximum number of tests on a path: onnxruntime reads trees recursively, and 30,000 tests overflow a stack of 8 MB."""


def name_obstacle(feature: Feature, answers: Collection[str] = ()) -> str | None:
    """Return an obstacle if a column's name is an output's, or begins with `RESERVED` (ignoring case); else None.

    Args:
        feature: The column.
        answers: Names of outputs that do not begin with `RESERVED`.
    """
    if feature.name.lower().startswith(RESERVED) or feature.name in answers:
        legal = ", ".join((*answers, f"{RESERVED}…"))
        return f"the column {feature.name!r} has a name reserved for predictions: {legal}"
    return None


def type_obstacle(feature: Feature, reason: str) -> str | None:
    """Return an obstacle that ends in `reason` if the categories of a column are of different types, else None."""
    if len(set(map(type_of, feature.categories))) > 1:
        return f"{feature.name!r} has categories of different types, {reason}"
    return None


def number_obstacle(model: Model, language: str) -> str | None:
    """Return why a language with one type of numbers cannot tell categories such as 1 and 1.0 apart; None if it can."""
    for feature in (*model.schema.attributes, *filter(None, [model.schema.target])):
        codes = category_codes(feature.categories)
        for (kind, label), code in codes.items():
            if kind == "int" and codes.get(("float", label), code) != code:
                one, other = int(label), float(label)
                return f"{feature.name!r} has the categories {one} and {other}, the same number in {language}"
    return None


def type_of(label: Label) -> str:
    """Return the type of a label: text, truth value or number."""
    return "text" if isinstance(label, str) else "truth value" if isinstance(label, bool) else "number"


def sql_obstacle(dialect: str, model: Model, program: Program) -> str | None:
    """Return why a model cannot be expressed exactly in an SQL dialect, or that sqlglot is missing; None if it can."""
    if find_spec("sqlglot") is None:
        return "the export needs sqlglot: pip install 'espalier[sql]'"
    columns = [*model.schema.attributes, *filter(None, [model.schema.target])]
    names = [feature.name for feature in model.schema.attributes]
    if dialect in IGNORES_CASE and (alike := _differ_only_in_case(names)) is not None:
        return f"the columns {alike[0]!r} and {alike[1]!r} differ only in case, which this database ignores in names"
    return next(
        (reason for feature in columns if (reason := _of_sql_column(feature, dialect)) is not None),
        number_obstacle(model, "SQL") or flat_obstacle(model, program),
    )


def _differ_only_in_case(names: Iterable[str]) -> tuple[str, str] | None:
    found: dict[str, str] = {}
    pairs = ((found.setdefault(name.casefold(), name), name) for name in names)
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


def _of_sql_column(feature: Feature, dialect: str) -> str | None:
    name, labels = feature.name, feature.categories
    if feature.kind is FeatureKind.DATETIME:
        return f"{name!r} is compared as seconds since 1970, and databases convert dates differently"
    if dialect == "oracle" and "" in labels:
        return f"{name!r} has the empty text as a category, which Oracle takes as NULL"
    texts = [label.rstrip(" ") for label in labels if isinstance(label, str)]
    if dialect == "tsql" and len(set(texts)) < len(texts):
        return f"{name!r} has categories that differ only by spaces at the end, which T-SQL does not tell apart"
    return name_obstacle(feature) or type_obstacle(feature, "and a column of a database has one type")


def onnx_obstacle(model: Model, program: Program) -> str | None:
    """Return why a model cannot be expressed exactly in ONNX, or that onnx is missing; None if it can."""
    if find_spec("onnx") is None:
        return "the export needs onnx: pip install 'espalier[onnx]'"
    reasons = (*_of_onnx_inputs(model), number_obstacle(model, "ONNX"), flat_obstacle(model, program))
    return next(filter(None, reasons), None) or _depth_obstacle(model, program)


def _of_onnx_inputs(model: Model) -> Iterator[str | None]:
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
        for step, depth in zip(program.steps, depths, strict=True):  # the targets of a step come after it
            targets = {*step.targets, step.absent} if step.kind != ANSWER else set()
            for target in targets:
                depths[target] = depth + (len(targets) - 1).bit_length()
        deepest = max(depths)
    return f"a path has {deepest} tests; at most {MAX_TESTS} are safe in runtimes" if deepest > MAX_TESTS else None
