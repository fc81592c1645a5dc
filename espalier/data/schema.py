"""The schema of a table: name, kind, role and categories of each column.

The *code* of a category is its index in ``Feature.categories``; -1 means missing or never seen. Labels keep their JSON
type: ``1``, ``1.0``, ``"1"`` and ``true`` are four different categories.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypeVar

from espalier.data.labels import MAX_INTEGER, NOT_TEXT, Label, is_not_text, label_key, label_text, meaning
from espalier.data.missing_values import DEFAULT_MISSING_VALUES
from espalier.errors import Fault, SchemaError, pointer

Word = TypeVar("Word", bound=StrEnum)

MEMBERS: Final = ("target", "task", "missing_values", "missing_token", "missing_cells", "columns")
COLUMN_MEMBERS: Final = ("name", "kind", "type", "role", "categories", "values")
KIND_ALIASES: Final = {"categorical": "nominal"}
MAX_NAME_LENGTH: Final = 1_000


class FeatureKind(StrEnum):
    """The kind of a column's values."""

    NUMERIC = "numeric"
    """A number, split at thresholds."""
    NOMINAL = "nominal"
    """One of a set of categories without an order."""
    ORDINAL = "ordinal"
    """One of a set of categories in a declared order, split at thresholds and shown by name."""
    BOOLEAN = "boolean"
    """Nominal with at most two categories."""
    DATETIME = "datetime"
    """An ISO 8601 instant, split at thresholds (seconds since 1970-01-01 UTC) and shown as a date."""


class Role(StrEnum):
    """The role of a column."""

    ATTRIBUTE = "attribute"
    TARGET = "target"
    WEIGHT = "weight"
    """The weight of the row, a number of at least 0; a row of weight 0 counts for nothing."""
    IGNORE = "ignore"
    """Stored, but not used: an id, a comment."""


CODED_KINDS: Final = frozenset({FeatureKind.NOMINAL, FeatureKind.ORDINAL, FeatureKind.BOOLEAN})


@dataclass(frozen=True)
class Feature:
    """One column.

    Attributes:
        name: The column's name, unique in its schema.
        kind: Kind of the column's values.
        role: The column's role.
        categories: The labels in the order of their codes, which decides ties. Empty for numeric and datetime columns
            and, in a model's schema, for ignored nominal columns.
    """

    name: str
    kind: FeatureKind
    role: Role = Role.ATTRIBUTE
    categories: tuple[Label, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only: `codes` are computed again after unpickling."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def coded(self) -> bool:
        """Whether cells are int32 codes of categories; otherwise they are floats."""
        return self.kind in CODED_KINDS

    @cached_property
    def codes(self) -> Mapping[tuple[str, Label], int]:
        """The code of each category, keyed by `label_key`.

        >>> Feature("colour", FeatureKind.NOMINAL, categories=("red", 1)).codes
        {('str', 'red'): 0, ('int', 1): 1}
        """
        return {label_key(label): code for code, label in enumerate(self.categories)}

    @property
    def unordered(self) -> bool:
        """Whether the values have no order: nominal and boolean."""
        return self.kind in (FeatureKind.NOMINAL, FeatureKind.BOOLEAN)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        document: dict[str, Any] = {"name": self.name, "kind": str(self.kind), "role": str(self.role)}
        if self.coded:
            document["categories"] = list(self.categories)
        return document


@dataclass(frozen=True)
class Schema:
    """All columns of a table, in file order.

    Attributes:
        features: The columns.
        missing_values: Texts that mean a missing value, besides null and CSV's empty cell. If one is the text of a
            number, this number means a missing value, too.

    Raises:
        SchemaError: The columns are not legal. For example, two have the same name, or a category is listed twice.

    >>> schema = Schema.from_dict({"target": "play", "columns": [
    ...     {"name": "wind", "kind": "nominal", "categories": ["weak", "strong"]},
    ...     {"name": "play", "kind": "nominal", "categories": ["no", "yes"]}]})
    >>> schema.task, [feature.name for feature in schema.attributes]
    ('classification', ['wind'])
    """

    features: tuple[Feature, ...]
    missing_values: tuple[str, ...] = DEFAULT_MISSING_VALUES

    def __post_init__(self) -> None:
        faults = list(_faults_of_features(self.features))
        if any(map(is_not_text, self.missing_values)):
            faults.append(Fault("/missing_values", "characters", f"a text {NOT_TEXT}"))
        SchemaError.raise_for(faults)

    @cached_property
    def attributes(self) -> tuple[Feature, ...]:
        """The columns that a tree may test, in file order. A node stores an index in this tuple."""
        return tuple(feature for feature in self.features if feature.role is Role.ATTRIBUTE)

    @cached_property
    def target(self) -> Feature | None:
        """The column to learn, if one is declared."""
        return next((feature for feature in self.features if feature.role is Role.TARGET), None)

    @cached_property
    def weight(self) -> Feature | None:
        """The column of row weights, if one is declared."""
        return next((feature for feature in self.features if feature.role is Role.WEIGHT), None)

    @property
    def task(self) -> str | None:
        """``classification`` for a target of categories, ``regression`` for one of numbers, None without a target."""
        if self.target is None:
            return None
        return "classification" if self.target.coded else "regression"

    @property
    def classes(self) -> tuple[Label, ...]:
        """The target's categories; empty for a regression or without a target."""
        return self.target.categories if self.target is not None else ()

    def place(self, name: str) -> int | None:
        """Return the index in ``features`` of the column called `name`; None if there is none."""
        return next((place for place, feature in enumerate(self.features) if feature.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that `from_dict` reads."""
        return {
            "target": self.target.name if self.target else None,
            "task": self.task,
            "missing_values": list(self.missing_values),
            "columns": [feature.to_dict() for feature in self.features],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Schema":
        """Read a declaration that gives the kind of every column.

        Raises:
            SchemaError: The document is not legal.
        """
        columns, _, missing_values = parse_declaration(document)
        faults, features = [], []
        for place, column in enumerate(columns):
            if column.kind is None:
                faults.append(_fault(place, "kind", "required", f"must be one of {', '.join(FeatureKind)}"))
            else:
                role = column.role or Role.ATTRIBUTE
                features.append(Feature(column.name, column.kind, role, column.categories or ()))
        SchemaError.raise_for(faults)
        return cls(tuple(features), missing_values)


@dataclass(frozen=True, slots=True)
class ColumnDeclaration:
    """The declaration of one column. A `kind` or `categories` of None is inferred; a `role` of None means attribute.

    Attributes:
        more_categories: Whether other categories are legal. They are appended to the declared ones.
    """

    name: str
    kind: FeatureKind | None = None
    role: Role | None = None
    categories: tuple[Label, ...] | None = None
    more_categories: bool = False


def parse_declaration(document: Mapping[str, Any]) -> tuple[list[ColumnDeclaration], str | None, tuple[str, ...]]:
    """Return the columns, the task and the missing values of a schema's JSON form.

    ``{"target", "task", "missing_values" | "missing_token", "columns": [{"name", "kind" | "type", "role",
    "categories" | "values"}]}``. ``categorical`` means ``nominal``. Misspelled keys are refused, unknown keys ignored.

    Raises:
        SchemaError: The document is not legal.
    """
    if not isinstance(document, Mapping):
        raise SchemaError([Fault("", "wrong_type", 'a schema must be an object: {"target": …, "columns": […]}')])
    columns = document.get("columns", [])
    if not isinstance(columns, Sequence) or isinstance(columns, str):
        raise SchemaError([Fault("/columns", "wrong_type", "must be a list of columns")])
    faults = list(_misspellings(document, MEMBERS))
    declared = [_parse_column(place, column, faults) for place, column in enumerate(columns)]
    first = {column.name: place for place, column in reversed([*enumerate(declared)])}
    twice = ((place, each.name) for place, each in enumerate(declared) if each.name and first[each.name] < place)
    faults += [_fault(place, "name", "duplicate", f"{name!r} is listed twice") for place, name in twice]
    target = document.get("target")
    if target is not None:
        declared = _with_target(declared, target, faults)
    task = document.get("task")
    if task not in (None, "classification", "regression"):
        faults.append(Fault("/task", "unknown_value", "must be classification or regression"))
    elif task and target is None and all(column.role is not Role.TARGET for column in declared):
        faults.append(Fault("/task", "required", "there is no target: name the column to learn, or give no task"))
    missing_values = _parse_missing_values(document, faults)
    SchemaError.raise_for(faults)
    return declared, task, missing_values


def _misspellings(document: Mapping[str, Any], members: Sequence[str], *path: str | int) -> Iterator[Fault]:
    for name in sorted(set(map(str, document)).difference(members)):
        for meant in get_close_matches(name, members, n=1, cutoff=0.8):
            yield Fault(pointer(*path, name), "unknown_field", f"there is no such member: is {meant!r} meant?")


def _fault(place: int, member: str, code: str, message: str) -> Fault:
    return Fault(pointer("columns", place, member), code, message)


def _faults_of_features(features: Sequence[Feature]) -> Iterator[Fault]:
    names: set[str] = set()
    roles: set[Role] = set()
    for place, feature in enumerate(features):
        if not feature.name or len(feature.name) > MAX_NAME_LENGTH:
            yield _fault(place, "name", "length", f"a name has 1 to {MAX_NAME_LENGTH} characters")
        elif is_not_text(feature.name):
            yield _fault(place, "name", "characters", f"a name {NOT_TEXT}")
        elif feature.name in names:
            yield _fault(place, "name", "duplicate", f"two columns are called {feature.name!r}")
        if feature.role in roles & {Role.TARGET, Role.WEIGHT}:
            yield _fault(place, "role", "duplicate", f"there is another {feature.role} column")
        if feature.role is Role.WEIGHT and feature.kind is not FeatureKind.NUMERIC:
            yield _fault(place, "kind", "not_numeric", "a weight column must be numeric")
        if feature.role is Role.TARGET and feature.kind is FeatureKind.DATETIME:
            yield _fault(place, "kind", "not_legal", "a target cannot be a datetime")
        for code, message in _faults_of_categories(feature):
            yield _fault(place, "categories", code, message)
        names.add(feature.name)
        roles.add(feature.role)


def _faults_of_categories(feature: Feature) -> Iterator[tuple[str, str]]:
    labels = feature.categories
    if not feature.coded:
        if labels:
            yield "not_legal", f"a {feature.kind} column has no categories"
        return
    if len({label_key(label) for label in labels}) != len(labels):
        yield "duplicate", "a category is listed twice"
    elif feature.role is Role.TARGET and len({label_text(label) for label in labels}) != len(labels):
        # In the JSON form of a prediction, class names are the members of an object.
        yield "ambiguous", "two classes are written alike, such as 1 and the text 1"
    if feature.kind is FeatureKind.BOOLEAN and len(labels) > 2:
        yield "length", f"a boolean column has at most 2 categories, not {len(labels)}"
    if any(isinstance(label, float) and not math.isfinite(label) for label in labels):
        yield "not_finite", "a category must be a finite number, text, true or false"
    if any(isinstance(label, int) and abs(label) > MAX_INTEGER for label in labels):
        yield "too_large", "a whole number beyond 2^53 must be given as text"
    if any(isinstance(label, str) and is_not_text(label) for label in labels):
        yield "characters", f"a category {NOT_TEXT}"


def _parse_column(place: int, column: Any, faults: list[Fault]) -> ColumnDeclaration:
    if not isinstance(column, Mapping) or not isinstance(column.get("name"), str):
        faults.append(Fault(pointer("columns", place), "wrong_type", 'must be an object with a "name"'))
        return ColumnDeclaration("")
    faults += _misspellings(column, COLUMN_MEMBERS, "columns", place)
    kind = _parse_word(FeatureKind, column.get("kind", column.get("type")), pointer("columns", place, "kind"), faults)
    role = _parse_word(Role, column.get("role"), pointer("columns", place, "role"), faults)
    labels = column.get("categories", column.get("values"))
    is_list = isinstance(labels, list | tuple) and all(isinstance(label, str | int | float) for label in labels)
    if labels is not None and not is_list:
        faults.append(_fault(place, "categories", "wrong_type", "must be a list of texts, numbers, true or false"))
        labels = None
    if kind is FeatureKind.ORDINAL and not labels:
        faults.append(_fault(place, "categories", "required", "an ordinal column needs its categories in order"))
    if kind in (FeatureKind.NUMERIC, FeatureKind.DATETIME) and labels:
        faults.append(_fault(place, "categories", "not_legal", f"a {kind} column has no categories"))
    if kind is None and not all(isinstance(meaning(label), bool) for label in labels or ()):
        kind = FeatureKind.NOMINAL
    return ColumnDeclaration(column["name"], kind, role, tuple(labels) if labels is not None else None)


def _parse_word(words: type[Word], given: Any, path: str, faults: list[Fault]) -> Word | None:
    if given is None:
        return None
    word = KIND_ALIASES.get(given, given) if isinstance(given, str) else given
    if word in list(words):
        return words(word)
    faults.append(Fault(path, "unknown_value", f"must be one of {', '.join(words)}"))
    return None


def _with_target(columns: list[ColumnDeclaration], target: Any, faults: list[Fault]) -> list[ColumnDeclaration]:
    if not isinstance(target, str):
        faults.append(Fault("/target", "wrong_type", "must be the name of a column"))
        return columns
    if all(column.name != target for column in columns):
        return [*columns, ColumnDeclaration(target, role=Role.TARGET)]
    for place, column in enumerate(columns):
        if column.name == target and column.role in (Role.IGNORE, Role.WEIGHT):
            faults.append(_fault(place, "role", "not_legal", f"must be target: {target!r} is named as the target"))
    return [replace(column, role=Role.TARGET) if column.name == target else column for column in columns]


def _parse_missing_values(document: Mapping[str, Any], faults: list[Fault]) -> tuple[str, ...]:
    default = [document["missing_token"]] if "missing_token" in document else DEFAULT_MISSING_VALUES
    given = document.get("missing_values", default)
    if isinstance(given, list | tuple) and all(isinstance(token, str) for token in given):
        return tuple(given)
    faults.append(Fault("/missing_values", "wrong_type", "must be a list of texts"))
    return DEFAULT_MISSING_VALUES
