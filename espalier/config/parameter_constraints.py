"""Parameter objects, whose fields declare which values are legal.

A parameter object is a frozen dataclass. Its fields are declared by `parameter` with default, legal values and
meaning. ``--help``, the OpenAPI document and the docs are generated from these declarations.
"""

import dataclasses
import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from espalier.data.labels import MAX_INTEGER
from espalier.errors import ConfigError, Fault, pointer, within

Parameters = TypeVar("Parameters")
METADATA: Final = "espalier"
MAX_SEED: Final = 2**63 - 1
MAX_CHARACTERS_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """A description of one parameter for people.

    Attributes:
        name: The parameter's name in Python, in JSON and on the command line.
        default: The parameter's value if none is given.
        legal: The legal values, in words.
        choices: The legal words; empty if no word is legal.
        meaning: What the parameter does, in one sentence.
        json_schema: The legal values, as JSON Schema.
    """

    name: str
    default: Any
    legal: str
    choices: tuple[str, ...]
    meaning: str
    json_schema: Mapping[str, Any] = dataclasses.field(hash=False)  # a mapping has no hash


@dataclass(frozen=True, slots=True)
class Constraint:
    """The legal values of a parameter.

    Attributes:
        text: The legal values, in words.
        test: Function that returns whether a value is legal or, if there is `merge`, whether the value's type is legal.
        json_schema: The legal values, as JSON Schema.
        choices: The legal words; empty if no word is legal.
        freeze: Function that returns a legal value in an immutable form.
        merge: Function used instead of `freeze` if values have fields. It merges the given and the old value.
        thaw: Function used instead of `thawed` if values have fields. It returns the JSON form.
    """

    text: str
    test: Callable[[Any], bool]
    json_schema: Mapping[str, Any]
    choices: tuple[str, ...] = ()
    freeze: Callable[[Any], Any] = lambda value: value
    merge: Callable[[Any, Any], Any] | None = None
    thaw: Callable[[Any], Any] | None = None

    def or_null(self) -> "Constraint":
        """Return a constraint that also allows None."""
        return AnyOf(self, NULL)


class OneOf(Constraint):
    """One of the given words."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(
            f"one of {', '.join(words)}",
            lambda value: isinstance(value, str) and value in words,
            {"type": "string", "enum": list(words)},
            tuple(words),
        )


class Real(Constraint):
    """A finite number from `low` to `high`. If `above` is true, `low` itself is not legal."""

    def __init__(self, low: float, high: float = math.inf, *, above: bool = False) -> None:
        bound = f"above {low:g}" if above else f"of at least {low:g}"
        text = f"a number {bound}" if high == math.inf else f"a number {bound} and at most {high:g}"
        least = {"exclusiveMinimum" if above else "minimum": low}
        most = {} if high == math.inf else {"maximum": high}

        def test(value: Any) -> bool:
            return _is_number(value) and (value > low if above else value >= low) and value <= high

        super().__init__(text, test, {"type": "number", **least, **most}, freeze=float)


class Integer(Constraint):
    """A whole number from `low` to `high`, which is 2^53 by default, because JSON readers may round larger numbers."""

    def __init__(self, low: int, high: int = MAX_INTEGER) -> None:
        text = f"a whole number of at least {low}" if high == MAX_INTEGER else f"a whole number from {low} to {high}"

        def test(value: Any) -> bool:
            return not isinstance(value, bool) and isinstance(value, numbers.Integral) and low <= int(value) <= high

        super().__init__(text, test, {"type": "integer", "minimum": low, "maximum": high}, freeze=int)


class ObjectOf(Constraint):
    """An object with at least one member; `values` tests each value. Frozen, it is a tuple of pairs, sorted by key."""

    def __init__(self, keys: str, values: Constraint) -> None:
        def test(value: Any) -> bool:
            pairs = _pairs(value)
            if not pairs or not all(isinstance(key, str) and values.test(item) for key, item in pairs):
                return False
            return len({key for key, _ in pairs}) == len(pairs)

        def freeze(value: Any) -> tuple[tuple[str, Any], ...]:
            return tuple(sorted((key, values.freeze(item)) for key, item in _pairs(value) or ()))

        schema = {"type": "object", "minProperties": 1, "additionalProperties": values.json_schema}
        super().__init__(f"an object from {keys} (at least one) to {values.text}", test, schema, freeze=freeze)


class ListOfReals(Constraint):
    """A list of one or more finite numbers. It is frozen as a sorted tuple without repetitions."""

    def __init__(self) -> None:
        def test(value: Any) -> bool:
            return isinstance(value, list | tuple) and len(value) > 0 and all(_is_number(item) for item in value)

        def freeze(value: Any) -> tuple[float, ...]:
            return tuple(sorted({float(item) for item in value}))

        schema = {"type": "array", "minItems": 1, "items": {"type": "number"}}
        super().__init__("a list of numbers (at least one)", test, schema, freeze=freeze)


class AnyOf(Constraint):
    """A value that at least one of several constraints allows. The first constraint that allows a value freezes it."""

    def __init__(self, *constraints: Constraint) -> None:
        super().__init__(
            ", or ".join(each.text for each in constraints),
            lambda value: any(each.test(value) for each in constraints),
            {"anyOf": [each.json_schema for each in constraints]},
            tuple(choice for each in constraints for choice in each.choices),
            lambda value: next(each.freeze(value) for each in constraints if each.test(value)),
        )


NULL: Final = Constraint("null", lambda value: value is None, {"type": "null"})


def switch(meaning: str, *, default: bool) -> Any:
    """Declare a field that is true or false."""
    boolean = Constraint("true or false", lambda value: isinstance(value, bool), {"type": "boolean"})
    return parameter(default, boolean, meaning)


def parameter(default: Any, legal: Constraint, meaning: str) -> Any:
    """Declare a field of a parameter object."""
    return dataclasses.field(default=default, metadata={METADATA: (legal, meaning)})


def field_table(parameters: type | Any) -> tuple[FieldInfo, ...]:
    """Return the description of each declared field of a parameter object or its class."""
    return tuple(
        FieldInfo(field.name, field.default, legal.text, legal.choices, meaning, legal.json_schema)
        for field, legal, meaning in _declared(parameters)
    )


def parameters_from(base: Parameters, given: Mapping[str, Any], *, what: str) -> Parameters:
    """Return `base` with the values in `given`. `what` is the name of the object in messages.

    Raises:
        ConfigError: A name is unknown or a value is not legal. Every name and value is checked; faults have paths.
    """
    legal_by_name = {field.name: legal for field, legal, _ in _declared(base)}
    faults, values = [], {}
    for name, value in given.items():
        legal = legal_by_name.get(name)
        if legal is None:
            known = f": {', '.join(legal_by_name)}" if legal_by_name else " none"
            message = f"{what} has no field {name!r:.{MAX_CHARACTERS_SHOWN}}; it has{known}"
            faults.append(Fault(pointer(str(name)), "unknown_field", message))
        elif not legal.test(value):
            faults.append(Fault(pointer(name), "not_legal", f"must be {legal.text}"))
        elif legal.merge is None:
            values[name] = legal.freeze(value)
        else:
            try:
                values[name] = legal.merge(value, getattr(base, name))
            except ConfigError as error:
                faults += within(pointer(name), error.faults)
    ConfigError.raise_for(faults)
    return dataclasses.replace(base, **values)  # type: ignore[type-var]


def parameters_to_dict(parameters: Any) -> dict[str, Any]:
    """Return the JSON form of a parameter object; `parameters_from` reads it back."""
    return {
        field.name: (legal.thaw or thawed)(getattr(parameters, field.name)) for field, legal, _ in _declared(parameters)
    }


def thawed(value: Any) -> Any:
    """Return the JSON form of a frozen value: a tuple of pairs becomes an object, any other tuple becomes a list."""
    if isinstance(value, tuple) and value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        return {key: thawed(item) for key, item in value}
    if isinstance(value, tuple):
        return [thawed(item) for item in value]
    return value


def _declared(parameters: Any) -> Iterator[tuple[dataclasses.Field[Any], Constraint, str]]:
    declared = (field for field in dataclasses.fields(parameters) if METADATA in field.metadata)
    return ((field, *field.metadata[METADATA]) for field in declared)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number beyond the largest float
        return False


def _pairs(value: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(value, Mapping):
        return list(value.items())
    # The frozen form is legal too, so that a field can be copied from another configuration.
    if isinstance(value, tuple) and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        return list(value)
    return None
