"""Redeclare a data set without another upload: kinds, order of categories, roles, target and missing values.

Changed columns are read again from their stored labels and numbers; files below the store are read again as a whole.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import espalier

if TYPE_CHECKING:  # at run time, this import would load the modules of the database into the upload sandbox
    from service.repositories.datasets import NewDataSet

Read = TypeVar("Read")
LOST = frozenset({"leading_zeros", "rounded"})  # codes of notices about details that the stored cells have lost


def redeclared(
    dataset: espalier.Dataset, changes: Mapping[str, Any], notices: Iterable[espalier.Notice]
) -> espalier.Dataset:
    """Return the same rows under another declaration.

    `changes` may have ``target, task, missing_values, columns: [{name, kind, role, categories}]``; all else stays.
    A new numeric target becomes nominal if it has few distinct values, all whole, unless ``task`` or its kind is given.
    If a notice ``kind_against_majority`` doubts the kind of a column, and new ``missing_values`` occur in it, the kind
    is inferred again. The notices of unchanged columns stay, except ``copy_of_target``.
    """
    before, notices = dataset.schema, list(notices)
    declared, tokens, target = _changed(before, changes, notices)
    fresh: Mapping[str, tuple[espalier.Feature, Any]] = {}
    new_notices: Sequence[espalier.Notice] = ()
    if declared:
        new = _read(partial(_from_cells, dataset), list(declared.values()), changes, tokens)
        pairs = zip(new.schema.features, new.columns, strict=True)
        fresh, new_notices = {feature.name: (feature, column) for feature, column in pairs}, new.reading_notices
    stored = [_without_target(feature, target) for feature in before.features]
    changed = [
        fresh.get(feature.name, (feature, column)) for feature, column in zip(stored, dataset.columns, strict=True)
    ]
    schema = espalier.Schema(tuple(feature for feature, _ in changed), tuple(tokens))
    remaining = _remaining(notices, before, schema, declared)
    remaining += [notice for notice in notices if notice.code in LOST and notice.attribute in declared]
    return espalier.Dataset(schema, tuple(column for _, column in changed), (*remaining, *new_notices))


def read_redeclared(
    before: espalier.Schema,
    changes: Mapping[str, Any],
    notices: Sequence[espalier.Notice],
    *,
    read: Callable[..., "NewDataSet"],
) -> "NewDataSet":
    """Return the data set that `read` makes with the changed schema; add the old notices that still apply.

    Unlike in `redeclared`, all cells are read again. So a cell that the old ``missing_values`` made missing may get its
    value back.
    """
    declared, tokens, target = _changed(before, changes, notices)
    columns = [declared.get(each.name, _without_target(each, target).to_dict()) for each in before.features]
    new = _read(read, columns, changes, tokens)
    remaining = _remaining(notices, before, new.schema, declared)
    return dataclasses.replace(new, notices=tuple(dict.fromkeys((*remaining, *new.notices))))


def _changed(
    before: espalier.Schema, changes: Mapping[str, Any], notices: Iterable[espalier.Notice]
) -> tuple[dict[str, dict[str, Any]], list[str], str | None]:
    """Return the declarations of the columns to read again (by name), the texts for missing values, and the target."""
    tokens = list(changes.get("missing_values", before.missing_values))
    target = changes.get("target", before.target.name if before.target else None)
    _check_names(before, changes, target)
    new_tokens = set(tokens).difference(before.missing_values)
    given = {column["name"]: column for column in changes.get("columns", ())}
    inferred = {notice.attribute for notice in notices if notice.code == "kind_against_majority"}.difference(given)
    declared = {
        one.name: _declaration(
            one,
            given.get(one.name, {}),
            new_tokens,
            is_target=one.name == target,
            infer="task" in changes if one.name == target else one.name in inferred,
        )
        for one in before.features
        if one.name in given
        or not new_tokens.isdisjoint(one.categories)
        or (one.name == target and (one.role is not espalier.Role.TARGET or "task" in changes))
    }
    return declared, tokens, target


def _without_target(feature: espalier.Feature, target: str | None) -> espalier.Feature:
    was_target = feature.role is espalier.Role.TARGET and feature.name != target
    return dataclasses.replace(feature, role=espalier.Role.ATTRIBUTE) if was_target else feature


def _remaining(
    notices: Iterable[espalier.Notice], before: espalier.Schema, after: espalier.Schema, read_again: Collection[str]
) -> list[espalier.Notice]:
    same = {each.name for each in after.features if each in before.features and each.name not in read_again}
    # Copies of the target are found anew, since another column may be the target now.
    return [notice for notice in notices if notice.attribute in same and notice.code != "copy_of_target"]


def _read(
    read: Callable[..., Read], columns: Sequence[Mapping[str, Any]], changes: Mapping[str, Any], tokens: Sequence[str]
) -> Read:
    """Call `read` with the declaration of some columns, and raise its faults with pointers into `changes`."""
    try:
        return read(schema={"columns": columns, "task": changes.get("task"), "missing_values": tokens})
    except espalier.InvalidInput as error:
        raise type(error)(_relocated(error.faults, columns, changes)) from None


def _from_cells(dataset: espalier.Dataset, schema: Mapping[str, Any]) -> espalier.Dataset:
    kinds = {each["name"]: each.get("kind") for each in schema["columns"]}
    pairs = zip(dataset.schema.features, dataset.columns, strict=True)
    cells = {each.name: list(_cells(each, column, kinds[each.name])) for each, column in pairs if each.name in kinds}
    return espalier.dataset_from_columns(cells, schema=schema)


def _relocated(
    faults: Sequence[espalier.Fault], columns: Sequence[Mapping[str, Any]], changes: Mapping[str, Any]
) -> Iterator[espalier.Fault]:
    """Yield the faults, with paths that point into `changes`; a fault of a whole file keeps its empty path."""
    places = {column["name"]: place for place, column in enumerate(changes.get("columns", ()))}
    for fault in faults:
        if not fault.path:
            yield fault
            continue
        start, _, rest = fault.path.removeprefix("/columns/").removeprefix("/").partition("/")
        of_schema = fault.path.startswith("/columns/") and start.isdigit()
        name = columns[int(start)]["name"] if of_schema else start.replace("~1", "/").replace("~0", "~")
        place = f"/columns/{places[name]}" if name in places else "/target"
        inside = f"/{rest}" if of_schema and rest and name in places else ""
        row = f"row {rest}: " if rest.isdigit() and not of_schema else ""
        yield espalier.Fault(place + inside, fault.code, row + fault.message)


def _check_names(schema: espalier.Schema, changes: Mapping[str, Any], target: str | None) -> None:
    names = [column["name"] for column in changes.get("columns", ())]
    if len(names) > len(schema.features):
        message = f"must be at most {len(schema.features)}, as many as there are columns"
        raise espalier.SchemaError([espalier.Fault("/columns", "out_of_range", message)])
    first = {name: place for place, name in reversed([*enumerate(names)])}
    known = {feature.name for feature in schema.features}
    legal = espalier.listed(feature.name for feature in schema.features)
    named = {f"/columns/{place}/name": name for place, name in enumerate(names)}
    named |= {"/target": target} if target is not None else {}
    faults = [
        espalier.Fault(pointer, "unknown_column", f"there is no such column; there are: {legal}")
        for pointer, name in named.items()
        if name not in known
    ]
    faults += [
        espalier.Fault(f"/columns/{place}/name", "repeated", "this column is named twice")
        for place, name in enumerate(names)
        if first[name] != place
    ]
    faults += [
        espalier.Fault(f"/columns/{place}/role", "not_legal", "the target has no other role: give another target, too")
        for place, column in enumerate(changes.get("columns", ()))
        if column["name"] == target and "role" in column
    ]
    espalier.SchemaError.raise_for(faults)


def _declaration(
    feature: espalier.Feature, given: Mapping[str, Any], tokens: Collection[str], *, is_target: bool, infer: bool
) -> dict[str, Any]:
    old = feature.to_dict()
    if feature.coded:
        old["categories"] = [label for label in feature.categories if label not in tokens]
    is_new = is_target and feature.role is not espalier.Role.TARGET
    if (is_new and not feature.coded) or infer or feature.role is espalier.Role.IGNORE:
        del old["kind"]
        old.pop("categories", None)
    if given.get("kind", old.get("kind")) != old.get("kind"):
        old.pop("categories", None)
    role = given.get("role", "attribute" if feature.role is espalier.Role.TARGET else old["role"])
    return {**old, **given, "role": "target" if is_target else role}


def _cells(feature: espalier.Feature, column: Any, kind: str | None) -> Iterator[Any]:
    """Yield the cells of a column as a caller would upload them for the new kind."""
    alone = espalier.Dataset(espalier.Schema((feature,)), (column,))
    labels: Sequence[Any] = [row[feature.name] for row in alone.rows()]
    from_text = kind == "numeric" and feature.coded
    as_label = kind in ("nominal", "ordinal", "boolean") and not feature.coded
    for label in labels:
        if from_text and isinstance(label, str):
            number = espalier.number_from_text(label)
            yield label if number is None else number
        elif as_label and isinstance(label, float) and label.is_integer():
            yield int(label)
        else:
            yield label
