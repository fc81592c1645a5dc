"""Declare a table before its cells are read: by a schema and keywords, or by the schema of another table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from espalier.data.schema import ColumnDeclaration, Feature, FeatureKind, Role, Schema, parse_declaration
from espalier.errors import DataError, Fault, SchemaError, listed


@dataclass(frozen=True, slots=True)
class TableDeclaration:
    """The declaration of a table.

    Attributes:
        columns: The declared columns by name; all others are inferred.
        optional: Names of the declared columns that the table need not have.
        target: The keyword `target`, or None. If no column has this name, the path of the fault is /target.
        task: ``classification`` or ``regression``; None if the kind of the target decides.
        missing_values: Texts that mean a missing value.
        declares_missing: Whether the argument `schema` or `missing_values` of `declare` lists these texts.
    """

    columns: Mapping[str, ColumnDeclaration]
    optional: frozenset[str]
    target: str | None
    task: str | None
    missing_values: tuple[str, ...]
    declares_missing: bool

    def column(self, name: str) -> ColumnDeclaration:
        """Return the declaration of a column; an empty one if it is not declared."""
        return self.columns.get(name) or ColumnDeclaration(name)

    def check_names(self, names: Collection[str]) -> None:
        """Check that the columns called `names` fit the declaration.

        Raises:
            DataError: A declared column that is not optional does not exist; or the name of the only column has a
                semicolon, a tab or a bar.
        """
        legal = f"there are: {listed(name[:1_000] for name in names)}"
        faults = [
            Fault("/target" if name == self.target else "", "unknown_column", f"there is no column {name!r}; {legal}")
            for name in self.columns
            if name not in names and name not in self.optional
        ]
        if len(names) == 1 and any(mark in next(iter(names)) for mark in ";\t|"):
            faults.append(Fault("", "separator", "the table has one column: cells must be separated by commas"))
        DataError.raise_for(faults)


def declare(
    *,
    target: str | None = None,
    schema: Schema | Mapping[str, Any] | None = None,
    task: str | None = None,
    missing_values: Sequence[str] | None = None,
    weight: str | None = None,
    ignore: Sequence[str] = (),
    like: Schema | None = None,
) -> TableDeclaration:
    """Return a declaration; `espalier.dataset_from_columns` explains the keywords.

    Raises:
        DataError: A column has two roles, or `ignore` names a column twice.
        SchemaError: The schema or a keyword is not legal.
    """
    document = {} if like is not None else _document(schema, target, task, missing_values)
    if like is not None:
        columns, task, texts = list(map(_declared_like, like.features)), like.task, like.missing_values
    else:
        columns, task, texts = parse_declaration(document)
    by_name = {column.name: column for column in columns}
    aside = [ignore] if isinstance(ignore, str) else list(ignore)
    aside += [weight] if weight is not None else []
    targets = {column.name for column in columns if column.role is Role.TARGET}
    twice = {name for name in aside if aside.count(name) > 1 or name in targets}
    if twice:
        message = "{!r} can have one role only: target, weight or ignored"
        raise DataError([Fault("", "roles", message.format(name)) for name in sorted(twice)])
    optional = frozenset(by_name if like is not None else ()) - frozenset(aside)
    for name in aside:
        role = Role.WEIGHT if name == weight else Role.IGNORE
        by_name[name] = replace(by_name.get(name, ColumnDeclaration(name)), role=role)
    declares_missing = not document.keys().isdisjoint({"missing_values", "missing_token"})
    return TableDeclaration(by_name, optional, target, task, texts, declares_missing)


def _document(
    schema: object, target: str | None, task: str | None, missing_values: Sequence[str] | None
) -> dict[str, Any]:
    """Return the JSON form of a schema, in which each given keyword replaces the member of the same name."""
    given = schema.to_dict() if isinstance(schema, Schema) else schema
    if given is not None and not isinstance(given, Mapping):
        raise SchemaError([Fault("", "wrong_type", 'a schema must be an object: {"target": …, "columns": […]}')])
    document = dict(given or {})
    if target is not None:
        columns = document.get("columns", [])
        if isinstance(columns, list | tuple):  # `target` replaces the schema's target, which becomes an attribute
            document["columns"] = [
                {**column, "role": "attribute"}
                if isinstance(column, Mapping)
                and column.get("role") in (("weight", "ignore") if column.get("name") == target else ("target",))
                else column
                for column in columns
            ]
        document["target"] = target
    if task is not None:
        document["task"] = task
    if missing_values is not None:
        document["missing_values"] = missing_values if isinstance(missing_values, str) else list(missing_values)
    return document


def _declared_like(feature: Feature) -> ColumnDeclaration:
    is_text = all(isinstance(label, str) for label in feature.categories)
    # A model's schema lists no categories of an ignored nominal column: the column keeps those of the table.
    are_its_own = feature.role is Role.IGNORE and feature.kind is FeatureKind.NOMINAL and is_text
    categories = (() if are_its_own else feature.categories) if feature.coded else None
    return ColumnDeclaration(feature.name, feature.kind, feature.role, categories, more_categories=True)
