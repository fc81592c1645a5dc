"""The fields of a PMML document: their values, and the treatment of missing and invalid values."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field as dataclass_field, replace
from typing import Final

import numpy as np

from espalier.data.labels import MAX_INTEGER, Label
from espalier.data.number_parsing import number_from_text
from espalier.data.schema import Feature, FeatureKind, Role
from espalier.importing.sklearn import last_double
from espalier.importing.xml_elements import Element

NUMBER_TYPES: Final = frozenset({"integer", "float", "double"})
TARGETS: Final = frozenset({"target", "predicted"})
INVALID: Final = frozenset({"returnInvalid", "asIs", "asMissing"})
WHOLE: Final = re.compile(r"[-+]?[0-9]+")
INFINITIES: Final = {"INF": math.inf, "Infinity": math.inf, "-INF": -math.inf, "-Infinity": -math.inf}
OTHER: Final = -1
"""The code of every category that a field does not list."""


@dataclass(slots=True)
class Field:
    """A field of a PMML model.

    Attributes:
        feature: The column.
        element: The element in which the model names the field, for messages.
        data_type: The dataType of PMML.
        codes: Code of each category, by its text; a number or truth value is written as a double, such as ``1.0``.
        labels: The categories in the order of their codes. If `is_open`, categories that the model names are added.
        is_ordered: Whether its categories are compared in the order of the DataDictionary.
        is_open: Whether a category that is not listed is a known value.
        returns_invalid: Whether a row gets no answer if its category is not listed, or its number is in no Interval.
        replacement: The number or code that replaces a missing value; None if the value stays missing.
        has_answer: Whether a row in which the field is missing gets an answer.
        obstacle: Why the field cannot be tested; None if it can.
        missing_numbers: Numbers that mean a missing value.
    """

    feature: Feature
    element: Element
    data_type: str
    codes: dict[str, int] = dataclass_field(default_factory=dict)
    labels: list[Label] = dataclass_field(default_factory=list)
    is_open: bool = False
    is_ordered: bool = False
    returns_invalid: bool = False
    replacement: float | None = None
    has_answer: bool = True
    obstacle: str | None = None
    missing_numbers: frozenset[float] = frozenset()

    @property
    def is_category(self) -> bool:
        """Whether its values are categories."""
        return self.feature.coded

    def code(self, text: str, element: Element) -> int:
        """Return the code of a category. An unlisted category is added if `is_open`; else its code is OTHER."""
        label = self.label(text, element)
        key = label if isinstance(label, str) else repr(float(label))  # 1 and 1.0 of a double are one category
        if key not in self.codes and self.is_open:
            self.codes[key] = len(self.labels)
            self.labels.append(label)
        return self.codes.get(key, OTHER)

    def finished(self) -> Feature:
        """Return the feature with its categories."""
        return replace(self.feature, categories=tuple(self.labels))

    def label(self, text: str, element: Element) -> Label:
        """Return `text` as a category: boolean, text or number (int for digits, signed or not, up to ±MAX_INTEGER).

        Under type integer, a larger number is the text of its digits: doubles do not distinguish all such integers.
        """
        if self.data_type == "boolean":
            if text not in ("true", "false", "0", "1"):
                raise element.refused(f"a value of {self.feature.name!r} must be true or false")
            return text in ("true", "1")
        if self.data_type == "string":
            return text
        number = self.number(text, element)
        if self.data_type == "integer" and WHOLE.fullmatch(text.strip()) and abs(number) >= MAX_INTEGER:
            exact = int(text.strip().lstrip("+-0"))
            if exact > MAX_INTEGER:
                return str(exact if number > 0 else -exact)
        return int(number) if WHOLE.fullmatch(text.strip()) and abs(number) <= MAX_INTEGER else number

    def number(self, text: str | None, element: Element) -> float:
        """Return the finite number in `text`."""
        value = None if text is None else number_from_text(text.strip())
        if value is None:
            raise element.refused(f"needs a finite number for {self.feature.name!r}")
        return value

    def at_most(self, text: str | None, element: Element, *, strictly: bool) -> float:
        """Return the largest double that is ≤ the number in `text` (< if `strictly`) at the field's precision."""
        if text is not None and text.strip() in INFINITIES:
            value = INFINITIES[text.strip()]
            if not strictly or value < 0:
                return value
        else:
            value = self.number(text, element)
        if self.data_type != "float":
            return math.nextafter(value, -math.inf) if strictly else value
        with np.errstate(over="ignore"):
            rounded = np.float32(value)  # a value of a row is rounded to 32 bits, too
            return last_double(float(np.nextafter(rounded, np.float32(-np.inf)) if strictly else rounded))


def read_fields(root: Element, model: Element) -> tuple[dict[str, Field], Field | None]:
    """Return the fields that predicates may test, keyed by name, derived fields last; and the target, or None.

    Raises:
        DocumentError: A field has a property that cannot be imported.
    """
    dictionary, schema = root.first("DataDictionary"), model.first("MiningSchema")
    if dictionary is None or schema is None:
        raise model.refused("needs a DataDictionary and a MiningSchema")
    mined = dict[str, Element]()
    for each in schema.all("MiningField"):
        if mined.setdefault(each.get("name") or "", each) is not each:
            raise each.refused("there is another field of this name")
    fields, target = dict[str, Field](), None
    for data_field in dictionary.all("DataField"):
        name = data_field.get("name") or ""
        mining = mined.get(name)
        usage = "" if mining is None else mining.get("usageType") or "active"
        if mining is None or usage not in {"active", *TARGETS}:
            continue
        if name in fields or (usage in TARGETS and target is not None):
            raise data_field.refused("there is another field of this name, or another target")
        read = _field(data_field, mining, Role.TARGET if usage in TARGETS else Role.ATTRIBUTE)
        if usage in TARGETS:
            target = read
        else:
            fields[name] = read
    for derived in _derived(model):
        name, field = _derived_field(derived, fields)
        fields[name] = field
    return fields, target


def _field(element: Element, mining: Element, role: Role) -> Field:
    name, data_type = element.get("name") or "", element.get("dataType") or "string"
    kind = _kind(element, data_type)
    field = Field(Feature(name, kind, role), mining, data_type, is_open=True)
    field.is_ordered = element.get("optype") == "ordinal"
    values = list(element.all("Value"))
    valid = [value for value in values if value.get("property") in (None, "valid")]
    listed = ["false", "true"] if data_type == "boolean" and not valid else [each.get("value") or "" for each in valid]
    for text in listed if field.is_category else ():
        field.code(text, element)
    treatment = mining.get("invalidValueTreatment") or "returnInvalid"
    field.is_open = field.is_category and (treatment == "asIs" or not listed or role is Role.TARGET)
    limits_values = field.is_category or element.first("Interval") is not None
    field.returns_invalid = limits_values and treatment == "returnInvalid" and role is Role.ATTRIBUTE
    field.obstacle = next(_obstacles(field, element, mining, treatment), None)
    if kind is FeatureKind.NUMERIC:
        missing = [number_from_text(value.get("value") or "") for value in values if value.get("property") == "missing"]
        field.missing_numbers = frozenset(number for number in missing if number is not None)
    replacement = mining.get("missingValueReplacement")
    if replacement is not None and role is Role.ATTRIBUTE:
        code = field.code(replacement, mining) if field.is_category else 0
        if code == OTHER:
            raise mining.refused("the missingValueReplacement is not a value of the field")
        field.replacement = float(code) if field.is_category else field.number(replacement, mining)
    field.has_answer = mining.get("missingValueTreatment") != "returnInvalid"
    return field


def _kind(element: Element, data_type: str) -> FeatureKind:
    if element.get("optype") == "continuous" or (element.get("optype") is None and data_type in NUMBER_TYPES):
        return FeatureKind.NUMERIC
    return FeatureKind.BOOLEAN if data_type == "boolean" else FeatureKind.NOMINAL


def _obstacles(field: Field, element: Element, mining: Element, treatment: str) -> Iterator[str]:
    if field.data_type not in {*NUMBER_TYPES, "string", "boolean"}:
        yield f"its data type {field.data_type} is not read; string, boolean, integer, float and double are"
    if not field.is_category and field.data_type not in NUMBER_TYPES:
        yield f"it is continuous, and its data type is {field.data_type}"
    declared, mined = element.get("optype"), mining.get("optype")
    if mined not in (None, declared):
        yield f"its optype is {declared} in the DataDictionary and {mined} in the MiningSchema"
    if treatment not in INVALID:
        yield f"invalidValueTreatment {treatment} cannot be imported; {', '.join(sorted(INVALID))} can"
    if (mining.get("outliers") or "asIs") != "asIs":
        yield "its outliers are replaced, which cannot be imported"
    if not field.is_category and treatment == "asMissing" and element.first("Interval") is not None:
        yield "a number outside its Interval is missing, which cannot be imported"
    if not field.is_category and any(value.get("property") != "missing" for value in element.all("Value")):
        yield "it lists valid or invalid numbers, which cannot be imported"
    if field.is_open and any(value.get("property") not in (None, "valid") for value in element.all("Value")):
        yield "it lists missing or invalid categories and takes all others as valid, which cannot be imported"
    if element.get("isCyclic") == "1":
        yield "it is cyclic"


def _derived(model: Element) -> Iterator[Element]:
    transformations = model.first("LocalTransformations")
    return iter(()) if transformations is None else transformations.all("DerivedField")


def _derived_field(element: Element, fields: Mapping[str, Field]) -> tuple[str, Field]:
    """Return (name of a derived field, its source field converted to 32 or 64 bits)."""
    [inner, *others] = element.children or [element]
    source = fields.get(inner.get("field") or "") if inner.name == "FieldRef" else None
    is_numeric = source is not None and not source.is_category and source.data_type in NUMBER_TYPES
    name, data_type = element.get("name") or "", element.get("dataType")
    if source is None or others or not is_numeric or data_type not in ("float", "double"):
        raise element.refused("must be one FieldRef to a numeric field, converted to float or double")
    if name in fields:
        raise element.refused("there is another field of this name")
    is_narrow = "float" in (data_type, source.data_type)
    if inner.get("mapMissingTo") is not None:
        raise inner.refused("mapMissingTo cannot be imported")
    field = Field(source.feature, source.element, "float" if is_narrow else "double")
    field.replacement, field.has_answer, field.obstacle = source.replacement, source.has_answer, source.obstacle
    field.missing_numbers, field.returns_invalid = source.missing_numbers, source.returns_invalid
    return name, field
