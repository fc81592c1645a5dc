"""Write a model as an SQL query; sqlglot writes names, literals and types for each dialect.

The leaf of a row is computed without nested CASE expressions, which some databases refuse. The other columns
(label and probability, or value, and the rule's text) are then computed from the leaf::

    WITH espalier_leaves AS (SELECT t.*, CASE WHEN … THEN 1 … END AS espalier_leaf FROM table t)
    SELECT t.*, CASE WHEN espalier_leaf IN (1, …) THEN 'yes' … END AS espalier_label, … FROM espalier_leaves t

CASE, AND, OR, IN and IS NULL are the same in all dialects. This module writes them, as sqlglot is slow on large trees.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sqlglot import exp

from espalier.data.labels import MAX_INTEGER, Label
from espalier.data.schema import Feature
from espalier.explanation.explain import rule_of
from espalier.export.cases import Case, Part, cases_of
from espalier.export.program import Exported, LinearLeaf, Program
from espalier.export.tables import category_literals, missing_numbers
from espalier.model.linear import MAX_VALUE
from espalier.model.model import Model
from espalier.prediction.predict import leaf_prediction

CHUNK: Final = 500
"""Maximum number of branches of a CASE; COALESCE chains several. Some databases take time quadratic in this number."""
MATERIALIZES: Final = frozenset({"duckdb", "postgres", "sqlite"})
"""Dialects with a keyword to compute the leaf once instead of for each column."""
HAS_NAN: Final = frozenset({"bigquery", "duckdb", "oracle", "postgres", "snowflake", "spark"})
"""Dialects whose numbers may be NaN, which Espalier treats as missing."""
COLLATIONS: Final = {"mysql": "utf8mb4_0900_bin", "tsql": "Latin1_General_BIN2"}
"""Collations of dialects that otherwise ignore case when comparing text."""
MAX_LISTED: Final = 1_000
"""Maximum number of literals in one IN, a limit of Oracle."""
EXTREMES: Final = {"sqlite": ("MIN", "MAX")}
"""The functions that return the least and the greatest argument, if they are not LEAST and GREATEST."""
DOUBLES: Final = {"oracle": "BINARY_DOUBLE"}
"""The type of doubles, if it is not that of ``DOUBLE``: Oracle's is a decimal."""
FRACTIONS: Final = {"oracle": "{!r}d", "sqlite": "{:.18g}"}
"""How numbers above 2^53 or with a fraction are written: Oracle's decimals end at 1e126; SQLite misreads some texts."""


def sql_query(given: Exported, dialect: str) -> str:
    """Return a query that adds predictions to each row of a table, in columns named ``espalier_…``."""
    query = _Query(given.model, given.program, dialect)
    cases = cases_of(given.model, given.program)
    source = ".".join(query.name(part) for part in given.table.split("."))
    leaf = f"{query.leaf(cases)} AS {query.name('espalier_leaf')}"
    answers = (f"{column} AS {query.name(name)}" for name, column in query.answers(cases, rule_text=given.rule_text))
    leaves, columns = query.name("espalier_leaves"), ",\n  ".join(answers)
    inner = f"SELECT t.*, {leaf}\n  FROM {source} t"  # noqa: S608 - every name and text is quoted by sqlglot
    once = "MATERIALIZED " if dialect in MATERIALIZES else ""
    notes = "".join(f"-- {note}\n" for note in given.notes)
    return f"{notes}WITH {leaves} AS {once}(\n  {inner}\n)\nSELECT t.*, {columns}\nFROM {leaves} t;\n"


class _Query:
    def __init__(self, model: Model, program: Program, dialect: str) -> None:
        self.model, self.program, self.dialect = model, program, dialect
        self.attributes = model.schema.attributes
        self.double = DOUBLES.get(dialect, exp.DataType.build("double").sql(dialect=dialect))
        self.missing = [list(map(self._number, numbers)) for numbers in missing_numbers(model)]
        self.columns = [self._column(feature) for feature in self.attributes]
        self.literals = category_literals(model, self._literal)

    def name(self, name: str) -> str:
        return exp.Identifier(this=name, quoted=True).sql(dialect=self.dialect)

    def leaf(self, cases: Sequence[Case]) -> str:
        """Return the SQL expression for the number of the row's leaf or rule."""
        branches, default = [], None
        for case in cases:
            conditions = [text for part in case.parts if (text := self.condition(part)) is not None]
            if not conditions:  # it holds for every row, so later cases are never reached
                default = str(case.number)
                break
            branches.append((" AND ".join(conditions), str(case.number)))
        return _case(branches, default)

    def answers(self, cases: Sequence[Case], *, rule_text: bool) -> Iterator[tuple[str, str]]:
        """Yield the name and the expression of each column that is computed from the leaf."""
        numbers = sorted({case.number for case in cases})
        program, classes = self.program, self.model.schema.classes
        if classes:
            texts = list(map(self._literal, classes))
            yield "espalier_label", self._by_leaf((each, texts[program.codes[each]]) for each in numbers)
            shares = ((each, float(program.table[each, program.codes[each]])) for each in numbers)
            yield "espalier_probability", self._by_leaf((each, self._double(share)) for each, share in shares)
        elif program.linear:
            yield "espalier_value", self._by_leaf((each, self.equation(program.linear[each])) for each in numbers)
        else:
            values = ((each, float(program.table[each, 0])) for each in numbers)
            yield "espalier_value", self._by_leaf((each, self._double(value)) for each, value in values)
        if rule_text:
            rules = ((each, rule_of(self.model, leaf_prediction(self.model, each))) for each in numbers)
            yield "espalier_rule", self._by_leaf((each, self._literal(text)) for each, text in rules)

    def condition(self, part: Part) -> str | None:
        """Return the condition of an attribute; None if it always holds."""
        return self._number_condition(part) if part.codes is None else self._category_condition(part, part.codes)

    def equation(self, leaf: LinearLeaf) -> str:
        imputed = self.model.preparation.imputed or ()
        terms = [self._double(leaf.intercept)]
        for place, upper, coefficient in leaf.terms:
            if upper is None:
                column = self._limited(self._value(place, imputed[place]))
            else:
                holds = self.condition(Part(place, codes=upper, absent=imputed[place] in upper)) or "1 = 1"
                column = _case([(holds, self._double(1.0))], self._double(0.0))
            terms.append(f"{self._double(coefficient)} * {column}")
        return self._limited(" + ".join(terms))

    def _value(self, place: int, imputed: float) -> str:
        """Return the expression of a number or of an ordered category's code; missing values are imputed."""
        if not self.attributes[place].coded:
            known = self.condition(Part(place, absent=False)) or "1 = 1"
            return _case([(known, self.columns[place])], self._double(imputed))
        codes = [(self._is_one_of(place, texts), self._double(code)) for code, texts in enumerate(self.literals[place])]
        return _case(codes, self._double(imputed))

    def _number_condition(self, part: Part) -> str | None:
        column, known = self.columns[part.feature], list[str]()
        if part.above > -math.inf:
            known.append(f"{column} > {self._number(part.above)}")
        if part.at_most < math.inf:
            known.append(f"{column} <= {self._number(part.at_most)}")
        if part.known and part.absent and not known:
            return None
        absent = [f"{column} IS NULL"]
        if self.dialect in HAS_NAN:
            # Depending on the dialect, NaN is greater than every number, or all comparisons with it are false.
            finite = f"{column} <= {self._number(sys.float_info.max)}"
            known += [finite] if part.at_most == math.inf else []
            absent.append(f"NOT ({finite})")
        known += [f"{column} NOT IN ({', '.join(listed)})" for listed in _parts(self.missing[part.feature])]
        absent += [f"{column} IN ({', '.join(listed)})" for listed in _parts(self.missing[part.feature])]
        holds = [" AND ".join(known or [f"{column} IS NOT NULL"])] if part.known else []
        return _either([*holds, *(absent if part.absent else [])])

    def _category_condition(self, part: Part, codes: frozenset[int]) -> str | None:
        literals = self.literals[part.feature]
        if not part.absent:
            listed = [text for code in sorted(codes) for text in literals[code]]
            return self._is_one_of(part.feature, listed) if listed else "1 = 0"
        others = [text for code, texts in enumerate(literals) if code not in codes for text in texts]
        if not others:
            return None
        return _either([f"{self.columns[part.feature]} IS NULL", f"NOT ({self._is_one_of(part.feature, others)})"])

    def _is_one_of(self, place: int, literals: Sequence[str]) -> str:
        column = self.columns[place]
        if len(literals) == 1:
            return f"{column} = {literals[0]}"
        return _is_in(column, literals)

    def _column(self, feature: Feature) -> str:
        column, collation = f"t.{self.name(feature.name)}", COLLATIONS.get(self.dialect)
        if not feature.coded:
            # Databases compare large integers and decimals exactly, and round thresholds to the 32 bits of a FLOAT.
            return f"CAST({column} AS {self.double})"
        is_text = any(isinstance(label, str) for label in feature.categories)
        return f"{column} COLLATE {collation}" if collation and is_text else column

    def _literal(self, label: Label) -> str:
        if isinstance(label, bool):
            # SQL Server has no boolean literals; SQLite reads TRUE as a column if the table has one of that name.
            return str(int(label)) if self.dialect in ("sqlite", "tsql") else str(label).upper()
        if isinstance(label, str):  # SQL Server converts texts to a code page, unless they begin with N
            text = exp.National(this=label) if self.dialect == "tsql" else exp.Literal.string(label)
            return text.sql(dialect=self.dialect)
        return self._number(label)

    def _number(self, value: float) -> str:
        """Return a literal that is read as this number."""
        is_exact = abs(value) < MAX_INTEGER and value == int(value)
        return repr(value) if is_exact else FRACTIONS.get(self.dialect, "{!r}").format(value)

    def _double(self, value: float) -> str:
        return f"CAST({self._number(value)} AS {self.double})"

    def _limited(self, value: str) -> str:
        least, greatest = EXTREMES.get(self.dialect, ("LEAST", "GREATEST"))
        return f"{greatest}({least}({value}, {self._double(MAX_VALUE)}), {self._double(-MAX_VALUE)})"

    def _by_leaf(self, answers: Iterable[tuple[int, str]]) -> str:
        """Return a CASE over the leaf; leaves with the same result are grouped."""
        leaf, numbers = f"t.{self.name('espalier_leaf')}", dict[str, list[str]]()
        for number, answer in answers:
            numbers.setdefault(answer, []).append(str(number))
        return _case([(_is_in(leaf, listed), answer) for answer, listed in numbers.items()], None)


def _parts(literals: Sequence[str]) -> Iterator[Sequence[str]]:
    return (literals[at : at + MAX_LISTED] for at in range(0, len(literals), MAX_LISTED))


def _is_in(column: str, literals: Sequence[str]) -> str:
    return _either([f"{column} IN ({', '.join(part)})" for part in _parts(literals)])


def _either(conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"


def _case(branches: Sequence[tuple[str, str]], default: str | None) -> str:
    """Return a CASE expression, or several chained by COALESCE if there are more than `CHUNK` branches."""
    if not branches:
        return "NULL" if default is None else default
    chunks = []
    for at in range(0, len(branches), CHUNK):
        lines = (f"\n    WHEN {condition} THEN {answer}" for condition, answer in branches[at : at + CHUNK])
        chunks.append(f"CASE{''.join(lines)}")
    if len(chunks) == 1:
        return f"{chunks[0]}{'' if default is None else f' ELSE {default}'} END"
    rest = [] if default is None else [default]
    return f"COALESCE({', '.join([*(f'{chunk} END' for chunk in chunks), *rest])})"
