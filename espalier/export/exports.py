"""Export a model to a format: the table of all formats, and the functions that use it."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from espalier.data.schema import FeatureKind
from espalier.documents.model import to_json
from espalier.errors import ConfigError, Fault, NotApplicable
from espalier.export.c_source import c_obstacle, c_source
from espalier.export.dmn import dmn_obstacle, dmn_table
from espalier.export.javascript_source import javascript_obstacle, javascript_source
from espalier.export.jdm import JDM_TYPE, jdm_obstacle, jdm_table
from espalier.export.obstacles import onnx_obstacle, sql_obstacle
from espalier.export.pmml import pmml, pmml_obstacle
from espalier.export.program import Exported, Program, program_of
from espalier.export.python_source import python_source
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.prediction.missing_strategies import with_missing_strategy
from espalier.version import __version__


@dataclass(frozen=True, slots=True)
class Export:
    """An export format.

    Attributes:
        meaning: Short description of the file.
        media_type: Media type of the file.
        ending: Ending of the file's name, without a dot.
        write: Returns the file's text, or its bytes if the format is binary.
        obstacle: Returns why a model cannot be exported exactly, or which package is missing; None if it can.
    """

    meaning: str
    media_type: str
    ending: str
    write: Callable[[Exported], str | bytes]
    obstacle: Callable[[Model, Program], str | None]


def _onnx(given: Exported) -> bytes:
    from espalier.export.onnx_graph import onnx_graph  # noqa: PLC0415 - an extra: only this format needs onnx

    return onnx_graph(given)


def _sql(dialect: str, product: str) -> Export:
    def write(given: Exported) -> str:
        from espalier.export.sql import sql_query  # noqa: PLC0415 - an extra: only this format needs sqlglot

        return sql_query(given, dialect)

    return Export(f"an SQL query for {product}", "application/sql", "sql", write, partial(sql_obstacle, dialect))


DIALECTS: Final = {
    "bigquery": "BigQuery",
    "duckdb": "DuckDB",
    "mysql": "MySQL",
    "oracle": "Oracle",
    "postgres": "PostgreSQL",
    "snowflake": "Snowflake",
    "spark": "Spark",
    "sqlite": "SQLite",
    "tsql": "SQL Server",
}
EXPORTS: Final[Mapping[str, Export]] = {
    "python": Export(
        "a Python file with predict(row)", "text/x-python", "py", python_source, lambda _model, _steps: None
    ),
    "c": Export("a C99 file with espalier_predict", "text/x-c", "c", c_source, c_obstacle),
    "javascript": Export(
        "a JavaScript module with predict(row)", "text/javascript", "mjs", javascript_source, javascript_obstacle
    ),
    "jdm": Export("a decision table of GoRules JDM", JDM_TYPE, "json", jdm_table, jdm_obstacle),
    "dmn": Export("a decision table of DMN 1.3", "application/xml", "dmn", dmn_table, dmn_obstacle),
    "onnx": Export("an ONNX graph, one input per attribute", "application/octet-stream", "onnx", _onnx, onnx_obstacle),
    "pmml": Export("a PMML 4.4 document", "application/xml", "pmml", pmml, pmml_obstacle),
    **{f"sql-{dialect}": _sql(dialect, product) for dialect, product in DIALECTS.items()},
}
"""The formats by name."""


def export_model(
    model: Model, form: str, *, missing: str | None = None, table: str = "rows", rule_text: bool = False
) -> str | bytes:
    r"""Return a model as a file for another system. The file gives the same predictions as `espalier.predict`.

    The file is text, or bytes if the format is binary (`onnx`). Its first comments, or its description, name the
    SHA-256 of the model document and the version of Espalier. An SQL query gives only the probability of the label that
    it predicts. One engine of `jdm` rounds inputs to 15 or 16 digits.

    Args:
        model: The model; its operating point, if it has one, also applies in the export.
        form: One of `EXPORTS`.
        missing: How the export handles missing values, one of `PREDICTION_STRATEGIES`; None: as the model does.
        table: SQL only: the table whose rows get predictions; a dot separates schema and table.
        rule_text: SQL only: whether the query has a column with the text of the rule.

    Raises:
        ConfigError: There is no such format or strategy, the model cannot use the strategy, or `table` is no name.
        NotApplicable: The format cannot express the model exactly, or needs a package; the message says why.

    >>> import espalier
    >>> model = espalier.train(espalier.dataset_from_csv("wind,play\nweak,yes\nstrong,no\n", target="play"), "id3")
    >>> file = dict()
    >>> exec(espalier.export_model(model, "python"), file)
    >>> file["predict"]({"wind": "strong"})
    {'label': 'no', 'leaf': 1, 'probability': {'no': 1.0, 'yes': 0.0}}
    """
    if form not in EXPORTS:
        raise ConfigError([Fault("/format", "unknown_value", f"must be one of {', '.join(EXPORTS)}")])
    if not all(table.split(".")) or not table.isprintable():
        message = "must be a name of printable characters, or such names with dots between, such as schema.table"
        raise ConfigError([Fault("/table", "not_legal", message)])
    answering = with_missing_strategy(model, missing)
    notes = tuple(_notes(answering))
    program = program_of(answering)
    reason = _obstacle(answering, program, form)
    if reason is not None:
        raise NotApplicable(f"{form} cannot express this model exactly: {reason}")
    return EXPORTS[form].write(Exported(answering, program, notes, table, rule_text))


def applicable_exports(model: Model, *, missing: str | None = None) -> dict[str, str | None]:
    """Return, for each format in `EXPORTS`, why the model cannot be exported to it; None if it can.

    Raises:
        ConfigError: There is no such strategy for missing values, or the model cannot use it.
    """
    model = with_missing_strategy(model, missing)
    program = program_of(model)
    return {form: _obstacle(model, program, form) for form in EXPORTS}


def _obstacle(model: Model, program: Program, form: str) -> str | None:
    if model.operating_point is not None and program.divides:
        return "exports apply no operating point to rows that a missing value divides; export with another `missing`"
    return EXPORTS[form].obstacle(model, program)


def _notes(model: Model) -> Iterator[str]:
    """Yield the first lines of a file, in ASCII. They have no names from the data: a name could end a comment."""
    yield f"Written by Espalier {__version__} from the model document with the SHA-256"
    yield hashlib.sha256(to_json(model.trained or model)).hexdigest()
    is_list = isinstance(model.body, RuleList) and model.preparation.imputed is None
    handled = "a condition on them does not hold" if is_list else model.missing_strategy
    yield f"Missing values and categories that training did not see: {handled}"
    if model.missing_strategy != model.config.missing:
        yield "(another strategy than in training)"
    if model.operating_point is not None:
        code, probability = model.operating_point.code, model.operating_point.probability
        yield f"Class number {code} (from 0) is the answer if its probability reaches {probability!r}"
    if any(feature.kind is FeatureKind.DATETIME for feature in model.schema.attributes):
        yield "Dates are numbers here: seconds since 1970-01-01 UTC"
