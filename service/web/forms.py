"""Form fields for parameters, and the values that were typed into forms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

import espalier
from service.api.problems import Problem
from service.errors import relocate
from service.web.filters import compact

TRUE_FALSE = ("true", "false")


@dataclass(frozen=True, slots=True)
class ParameterField:
    """A field of a form for one parameter.

    Attributes:
        name: Name of the field in the form.
        pointer: JSON pointer of the parameter in the request of the API.
        options: The legal words, if they are a fixed set; else empty, which makes a text field.
        default: The value that is used if nothing is chosen.
    """

    name: str
    label: str
    pointer: str
    options: tuple[str, ...]
    default: str
    hint: str
    value: str


def parameter_fields(
    parameters: Any, typed: Mapping[str, str], *, prefix: str, pointer: str, without: Sequence[str] = ()
) -> list[ParameterField]:
    """Return a form field per parameter, with the parameter's value as the default and the typed text as the value."""
    values = espalier.config_to_dict(parameters) if isinstance(parameters, espalier.TrainingConfig) else {}
    return [
        ParameterField(
            name=f"{prefix}{info.name}",
            label=info.name.replace("_", " "),
            pointer=f"{pointer}/{info.name}",
            options=_options(info),
            default=compact(values.get(info.name, getattr(parameters, info.name))),
            hint=info.meaning if _options(info) else f"{info.meaning}; {info.legal}",
            value=typed.get(f"{prefix}{info.name}", ""),
        )
        for info in espalier.field_table(parameters)
        if info.name not in without
    ]


def typed_parameters(kind: Any, typed: Mapping[str, str], *, prefix: str) -> dict[str, Any]:
    """Return the parameters that were typed or chosen; an empty field is left out."""
    given = ((info, typed.get(f"{prefix}{info.name}", "").strip()) for info in espalier.field_table(kind))
    return {info.name: typed_value(text, words=info.choices) for info, text in given if text}


def typed_value(text: str, *, words: Sequence[str] = ()) -> Any:
    """Return the JSON value of a text, or the number that a text such as ``+.5`` means.

    A text that is one of the `words`, or that is neither JSON nor a number, is returned unchanged.
    """
    if text in words:
        return text
    try:
        value = orjson.loads(text)
        orjson.dumps([[[value]]])  # TypeError: in a request, three levels deeper, it could not be written
        return value
    except (orjson.JSONDecodeError, TypeError):
        number = espalier.number_from_text(text)
        return text if number is None else number


def with_chosen(choices: Mapping[str, str], *chosen: str) -> list[tuple[str, str]]:
    """Return the choices of a menu, with each value in `chosen` that is not among them, so that the menu shows it."""
    return list({**choices, **{one: one for one in chosen if one and one not in choices}}.items())


def whole_number(text: str) -> int | None:
    """Return the number if the text is one to nine digits (spaces around them are ignored), else None."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def lines_of(text: str) -> list[str]:
    """Return the lines of a text field without surrounding spaces, except blank lines."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def text_of_lines(texts: Sequence[str]) -> str | None:
    """Return `texts` as the lines of a text field; None if one of them is blank or has more than one line."""
    return None if any(text.splitlines() != [text] or not text.strip() for text in texts) else "\n".join(texts)


def labels_named(text: str, categories: Sequence[espalier.Label]) -> list[espalier.Label]:
    """Return the labels that the lines of a text field name (see `label_named`); blank lines are skipped."""
    return [label_named(line, categories) for line in text.splitlines() if line.strip()]


def label_named(text: str, categories: Sequence[espalier.Label]) -> espalier.Label:
    """Return the category whose text is `text`, else the one whose text is `text` without surrounding spaces.

    If there is neither, return `text` without surrounding spaces.
    """
    texts = [espalier.label_text(label) for label in categories]
    found = next((wanted for wanted in (text, text.strip()) if wanted in texts), None)
    return text.strip() if found is None else categories[texts.index(found)]


def moved(problem: Problem, places: Mapping[str, str]) -> Problem:
    """Return the problem with other paths of its faults: `places` maps the start of a path to its replacement."""
    moved_pointer = relocate("", places)
    faults = tuple(replace(fault, path=moved_pointer(fault.path)) for fault in problem.faults)
    return replace(problem, faults=faults)


def _options(info: espalier.FieldInfo) -> tuple[str, ...]:
    if info.json_schema.get("type") == "boolean":
        return TRUE_FALSE
    alternatives = info.json_schema.get("anyOf", ())
    if not info.choices or any("additionalProperties" in one for one in alternatives):
        return ()
    return (*info.choices, *(["null"] if {"type": "null"} in alternatives else []))
