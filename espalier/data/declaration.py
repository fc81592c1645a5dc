"""The declaration of a table before its cells are read: a schema, names of roles, or another table's schema."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from espalier.data.schema import ColumnDeclaration, Declaration, Feature, FeatureKind, Role, Schema, parse_declaration
from espalier.errors import DataError, Fault, SchemaError

NOBODY: Final = ColumnDeclaration("")
MAX_NAMES_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDeclaration:
    """The declaration of a table: the keywords of `espalier.dataset_from_columns`, which explains them."""

    target: str | None = None
    schema: Schema | Mapping[str, Any] | None = None
    task: str | None = None
    missing_values: Sequence[str] | None = None
    weight: str | None = None
    ignore: Sequence[str] = ()
    like: Schema | None = None

    def declaration(self, names: Collection[str] | None = None) -> Declaration:
        """Read the declaration; `names` are those of the table, where they are known already.

        Raises:
            SchemaError: With every fault found.
        """
        if self.like is not None:
            return _declaration_like(self.like, names)
        given = self.schema.to_dict() if isinstance(self.schema, Schema) else self.schema
        if given is not None and not isinstance(given, Mapping):
            raise SchemaError([Fault("", "wrong_type", 'a schema must be an object: {"target": …, "columns": […]}')])
        document = dict(given or {})
        if self.target is not None:
            columns = document.get("columns", [])
            if isinstance(columns, list | tuple):  # another target than the schema's: that column becomes an attribute
                document["columns"] = [_without_target(column, self.target) for column in columns]
            document["target"] = self.target
        if self.task is not None:
            document["task"] = self.task
        if self.missing_values is not None:
            given_texts = self.missing_values
            document["missing_values"] = given_texts if isinstance(given_texts, str) else list(given_texts)
            document.pop("missing_token", None)
        return parse_declaration(document)

    def expected(self, declaration: Declaration) -> dict[str, ColumnDeclaration]:
        """Return what is declared of each column that is named anywhere, whether the table has it or not.

        Raises:
            DataError: A column has two roles.
        """
        by_name = {column.name: column for column in declaration.columns}
        ignored = [self.ignore] if isinstance(self.ignore, str) else list(self.ignore)
        aside = [*ignored, *([self.weight] if self.weight is not None else [])]
        twice = {name for name in aside if by_name.get(name, NOBODY).role is Role.TARGET}
        if len(set(aside)) < len(aside):
            twice |= {name for name in aside if aside.count(name) > 1}
        if twice:
            message = "{!r} can have one role only: target, weight or ignored"
            raise DataError([Fault("", "roles", message.format(name)) for name in sorted(twice)])
        for name in aside:
            role = Role.WEIGHT if name == self.weight else Role.IGNORE
            given = by_name.get(name, ColumnDeclaration(name))
            by_name[name] = ColumnDeclaration(name, given.kind, role, given.categories)
        return by_name

    def columns(self, names: Collection[str], declaration: Declaration) -> dict[str, ColumnDeclaration]:
        """Return what is declared of each column of a table with these names.

        Raises:
            DataError: A column is declared that is not there, or has two roles.
        """
        by_name = {name: ColumnDeclaration(name) for name in names} | self.expected(declaration)
        faults: list[Fault] = []
        unknown = [name for name in by_name if name not in names]
        if unknown:
            legal = ", ".join(list(names)[:MAX_NAMES_SHOWN]) + (", …" if len(names) > MAX_NAMES_SHOWN else "")
            message = "there is no column {!r}; there are: {}"
            faults += [
                Fault("/target" if name == self.target else "", "unknown_column", message.format(name, legal))
                for name in unknown
            ]
        if len(names) == 1 and any(mark in next(iter(names)) for mark in ";\t|"):
            faults.append(Fault("", "separator", "the table has one column: cells must be separated by commas"))
        if faults:
            raise DataError(faults)
        return by_name


def _declaration_like(schema: Schema, names: Collection[str] | None) -> Declaration:
    declared = tuple(
        ColumnDeclaration(
            feature.name,
            feature.kind,
            feature.role,
            (() if _are_its_own(feature) else feature.categories) if feature.coded else None,
            more_categories=True,
        )
        for feature in schema.features
        if names is None or feature.name in names
    )
    return Declaration(declared, schema.task, schema.missing_values)


def _are_its_own(feature: Feature) -> bool:
    """Return whether a table lists its own categories of an ignored column: a model's schema does not hold them."""
    is_text = all(isinstance(label, str) for label in feature.categories)
    return feature.role is Role.IGNORE and feature.kind is FeatureKind.NOMINAL and is_text


def _without_target(column: object, target: str) -> object:
    if isinstance(column, Mapping) and column.get("role") == "target" and column.get("name") != target:
        return {**column, "role": "attribute"}
    return column
