"""Why a model cannot be expressed in SQL; apart from the query, so that the library is needed only to write one."""

from importlib.util import find_spec

from espalier.data.schema import Feature, FeatureKind
from espalier.export.cases import flat_obstacle
from espalier.export.obstacles import name_obstacle, number_obstacle, type_obstacle
from espalier.export.program import Program
from espalier.model.model import Model


def sql_obstacle(model: Model, program: Program, dialect: str) -> str | None:
    """Return why a model cannot be expressed exactly in a dialect; None if it can."""
    if find_spec("sqlglot") is None:
        return "it needs sqlglot: pip install 'espalier[sql]'"
    columns = [*model.schema.attributes, *filter(None, [model.schema.target])]
    return next(
        (reason for feature in columns if (reason := _of_column(feature, dialect)) is not None),
        number_obstacle(model, "SQL") or flat_obstacle(model, program),
    )


def _of_column(feature: Feature, dialect: str) -> str | None:
    name, labels = feature.name, feature.categories
    if feature.kind is FeatureKind.DATETIME:
        return f"{name!r} is compared as seconds since 1970, and databases convert dates differently"
    if dialect == "oracle" and "" in labels:
        return f"{name!r} has the empty text as a category, which Oracle takes as NULL"
    texts = [label.rstrip(" ") for label in labels if isinstance(label, str)]
    if dialect == "tsql" and len(set(texts)) < len(texts):
        return f"{name!r} has categories that differ only by spaces at the end, which T-SQL does not tell apart"
    return name_obstacle(feature) or type_obstacle(feature, "and a column of a database has one type")
