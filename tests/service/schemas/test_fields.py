"""Every field has error messages of its own, with a code for programs."""

import importlib
import pkgutil

import marshmallow as ma
import pytest

import service.schemas
from service.schemas.fields import Described, Integer, ListOf, Nested, PageQuery, Text, faults_of

MODULES = [
    importlib.import_module(f"service.schemas.{info.name}") for info in pkgutil.iter_modules(service.schemas.__path__)
]
SCHEMAS = {
    schema.__name__: schema
    for module in MODULES
    for schema in vars(module).values()
    if isinstance(schema, type) and issubclass(schema, ma.Schema)
}


def with_inner(field: ma.fields.Field) -> list[ma.fields.Field]:
    return [field, *(with_inner(field.inner) if isinstance(field, ma.fields.List) else [])]


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_no_field_answers_in_words_of_marshmallow(name: str) -> None:
    found = [one for field in SCHEMAS[name]().fields.values() for one in with_inner(field)]
    assert [one for one in found if not isinstance(one, Described)] == []


class Inner(PageQuery):
    number = Integer(required=True)


class Outer(PageQuery):
    texts = ListOf(Text())
    inner = Nested(Inner)


def test_faults_have_their_places_and_codes() -> None:
    with pytest.raises(ma.ValidationError) as refused:
        Outer().load({"texts": ["a", None, 3], "inner": {"limit": 0, "a/b": 1}, "more": 1})
    legal = "there is no such field; legal: limit, cursor"
    assert {(one.path, one.code, one.message) for one in faults_of(refused.value.messages)} == {
        ("/texts/1", "wrong_type", "must not be null"),
        ("/texts/2", "wrong_type", "must be text"),
        ("/inner/limit", "invalid_value", "must be a whole number from 1 to 200"),
        ("/inner/number", "required", "must be given"),
        ("/inner/a~1b", "unknown_field", f"{legal}, number"),
        ("/more", "unknown_field", f"{legal}, texts, inner"),
    }


def test_the_items_of_a_list_that_is_too_long_are_not_read() -> None:
    schema = ma.Schema.from_dict({"texts": ListOf(Text(), longest=3)})()
    assert schema.load({"texts": ["a", "b", "c"]}) == {"texts": ["a", "b", "c"]}
    with pytest.raises(ma.ValidationError) as refused:
        schema.load({"texts": [1, 2, 3, 4]})
    [fault] = faults_of(refused.value.messages)
    assert (fault.path, fault.code, fault.message) == ("/texts", "out_of_range", "must have at most 3 items")


@pytest.mark.parametrize("wrong", [None, 3, [], "text"])
def test_what_is_no_object_is_said_to_be_none(wrong: object) -> None:
    with pytest.raises(ma.ValidationError) as refused:
        Outer().load({"inner": wrong})
    [fault] = faults_of(refused.value.messages)
    assert (fault.path, fault.code) == ("/inner", "wrong_type")
