"""Redeclare a data set without another upload: kinds, order of categories, roles, target and missing values.

Changed columns are read again from their stored labels and numbers; files below the store are read again as a whole.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import espalier

if TYPE_CHECKING:  # at run time, this import would load the modules of the database into the upload sandbox
    from service.repositories.datasets import NewDataSet

Read = TypeVar("Read")
LOST = frozenset({"leading_zeros", "rounded", "finer_than_microseconds", "text_as_missing"})  # lost in stored cells
DOUBTS = frozenset({"kind_against_majority", "missing_as_category", "target_kind"})  # notices that doubt a kind


def redeclared(
    dataset: espalier.Dataset, changes: Mapping[str, Any], notices: Iterable[espalier.Notice]
) -> espalier.Dataset:
    """Return the same rows under another declaration.

    `changes` may have ``target, task, missing_values, columns: [{name, kind, role, categories}]``; all else stays.
    The notices of unchanged columns stay, except ``copy_of_target``. A kind that is not given is inferred again if:
    - a numeric or datetime column becomes the target, or the given task does not fit the kind of the target;
    - a nominal column whose categories are numbers was the target or ignored, and gets another role;
    - a column is not in ``columns``, but is read again, and a notice doubts its kind (`DOUBTS`).
    """
    before, notices = dataset.schema, list(notices)
    declared, tokens = _changed(before, changes, notices, columns=dataset.columns)
    fresh: Mapping[str, tuple[espalier.Feature, Any]] = {}
    new_notices: Sequence[espalier.Notice] = ()
    if declared:
        new = _read(partial(_from_cells, dataset), list(declared.values()), changes, tokens)
        pairs = zip(new.schema.features, new.columns, strict=True)
        fresh, new_notices = {feature.name: (feature, column) for feature, column in pairs}, new.reading_notices
    stored = zip(before.features, dataset.columns, strict=True)
    features, columns = zip(*(fresh.get(feature.name, (feature, column)) for feature, column in stored), strict=True)
    documents = [feature.to_dict() for feature in features]
    schema = _read(lambda **_: espalier.Schema(features, tuple(tokens)), documents, changes, tokens)
    remaining = _remaining(notices, before, schema, declared)
    remaining += [notice for notice in notices if notice.code in LOST and notice.attribute in declared]
    return espalier.Dataset(schema, columns, (*remaining, *new_notices))


def read_redeclared(
    before: espalier.Schema,
    changes: Mapping[str, Any],
    notices: Sequence[espalier.Notice],
    *,
    read: Callable[..., "NewDataSet"],
) -> "NewDataSet":
    """Return the data set that `read` makes with the changed schema; add the old notices that still apply.

    All cells are read again, so a cell that the old ``missing_values`` made missing may get its value back.
    """
    declared, tokens = _changed(before, changes, notices)
    columns = [declared.get(each.name, each.to_dict()) for each in before.features]
    new = _read(read, columns, changes, tokens)
    remaining = _remaining(notices, before, new.schema, declared)
    return dataclasses.replace(new, notices=tuple(dict.fromkeys((*remaining, *new.notices))))


def _changed(
    before: espalier.Schema, changes: Mapping[str, Any], notices: Iterable[espalier.Notice], *, columns: Any = None
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the declarations of the columns to read again (by name), and the texts for missing values.

    A new numeric missing value affects the numeric columns that contain it; if `columns` is None, all numeric columns.
    """
    tokens = list(changes.get("missing_values", before.missing_values))
    target = changes.get("target", before.target.name if before.target else None)
    _check_names(before, changes, target)
    given = {column["name"]: column for column in changes.get("columns", ())}
    doubted = {notice.attribute for notice in notices if notice.code in DOUBTS}.difference(given)
    texts = set(tokens).difference(before.missing_values)
    numbers = {number for number in map(espalier.number_from_text, texts) if number is not None}
    declared = {}
    for number, one in enumerate(before.features):
        kept = [label for label in one.categories if not _is_missing(label, texts, numbers)]
        is_read_again = len(kept) < len(one.categories) or (one.kind is espalier.FeatureKind.DATETIME and bool(texts))
        if one.kind is espalier.FeatureKind.NUMERIC and numbers:
            is_read_again = columns is None or bool(np.isin(columns[number], list(numbers)).any())
        role = "target" if one.name == target else "attribute" if one.role is espalier.Role.TARGET else str(one.role)
        if one.name in given or is_read_again or role != one.role or (role == "target" and "task" in changes):
            column = {"role": role, **given.get(one.name, {})}
            is_other_task = role == "target" and "task" in changes and one.coded == (changes["task"] == "regression")
            declared[one.name] = _declaration(one, column, kept, infer=one.name in doubted or is_other_task)
    return declared, tokens


def _is_missing(label: espalier.Label, texts: Collection[str], numbers: Collection[Any]) -> bool:
    return espalier.label_text(label) in texts or (label in numbers and not isinstance(label, bool))


def _remaining(
    notices: Iterable[espalier.Notice], before: espalier.Schema, after: espalier.Schema, read_again: Collection[str]
) -> list[espalier.Notice]:
    other = {each.name for each in before.features if each not in after.features or each.name in read_again}
    # Copies of the target are found anew, since another column may be the target now.
    return [notice for notice in notices if notice.attribute not in other and notice.code != "copy_of_target"]


def _read(
    read: Callable[..., Read], columns: Sequence[Mapping[str, Any]], changes: Mapping[str, Any], tokens: Sequence[str]
) -> Read:
    """Call `read` with the declaration of some columns, and raise its faults with pointers into `changes`."""
    try:
        return read(schema={"columns": columns, "task": changes.get("task"), "missing_values": tokens})
    except espalier.InvalidInput as error:
        raise type(error)(_relocated(error.faults, columns, changes)) from None


def _from_cells(dataset: espalier.Dataset, schema: Mapping[str, Any]) -> espalier.Dataset:
    kinds, tokens = {each["name"]: each.get("kind") for each in schema["columns"]}, schema["missing_values"]
    pairs = zip(dataset.schema.features, dataset.columns, strict=True)
    known = [(each, column) for each, column in pairs if each.name in kinds]
    cells = {each.name: list(_cells(each, column, kinds[each.name], tokens)) for each, column in known}
    return espalier.dataset_from_columns(cells, schema=schema)


def _relocated(
    faults: Sequence[espalier.Fault], columns: Sequence[Mapping[str, Any]], changes: Mapping[str, Any]
) -> Iterator[espalier.Fault]:
    """Yield the faults, with paths that point into `changes`; a fault of a whole file keeps its empty path."""
    given = changes.get("columns", ())
    places = {column["name"]: place for place, column in enumerate(given)}
    targets = {column["name"] for column in columns if column.get("role") == "target"}
    for fault in faults:
        if fault.path in ("", "/missing_values"):
            yield fault
            continue
        start, _, rest = fault.path.removeprefix("/columns/").removeprefix("/").partition("/")
        of_schema = fault.path.startswith("/columns/") and start.isdigit()
        name = columns[int(start)]["name"] if of_schema else start.replace("~1", "/").replace("~0", "~")
        given_first = next((f"/{member}" for member in ("target", "task", "columns") if member in changes), "/target")
        elsewhere = "/missing_values" if "missing_values" in changes and name not in targets else given_first
        place = f"/columns/{places[name]}" if name in places else elsewhere
        inside = f"/{rest}" if of_schema and rest and name in places else ""
        where = "" if name in places else f"column {name!r}: "
        where += f"row {rest}: " if rest.isdigit() and not of_schema else ""
        has_categories = name in places and "categories" in given[places[name]]
        remedy = "; list its categories in columns" if fault.code == "unknown_category" and not has_categories else ""
        yield espalier.Fault(place + inside, fault.code, where + fault.message + remedy)


def _check_names(schema: espalier.Schema, changes: Mapping[str, Any], target: str | None) -> None:
    columns = changes.get("columns", ())
    names = [column["name"] for column in columns]
    if len(names) > len(schema.features):
        message = f"must be at most {len(schema.features)}, as many as there are columns"
        raise espalier.SchemaError([espalier.Fault("/columns", "out_of_range", message)])
    first = {name: place for place, name in reversed([*enumerate(names)])}
    known = dict.fromkeys(feature.name for feature in schema.features)
    unknown = [f"/columns/{place}/name" for place, name in enumerate(names) if name not in known]
    unknown += ["/target"] if target is not None and target not in known else []
    message = f"there is no such column; there are: {espalier.listed(known)}"
    faults = [espalier.Fault(pointer, "unknown_column", message) for pointer in unknown]
    faults += [
        espalier.Fault(f"/columns/{place}/name", "repeated", "this column is named twice")
        for place, name in enumerate(names)
        if first[name] != place
    ]
    faults += [
        espalier.Fault(f"/columns/{place}/role", "not_legal", "the target has no other role: give another target, too")
        for place, column in enumerate(columns)
        if column["name"] == target and "role" in column
    ]
    if "task" in changes and target is None:
        faults.append(espalier.Fault("/task", "required", "there is no target: give the target, too, or no task"))
    espalier.SchemaError.raise_for(faults)


def _declaration(
    feature: espalier.Feature, given: Mapping[str, Any], kept: Sequence[espalier.Label], *, infer: bool
) -> dict[str, Any]:
    old = feature.to_dict()
    is_new_role = given["role"] != feature.role and feature.role in (espalier.Role.TARGET, espalier.Role.IGNORE)
    are_numbers = feature.kind is espalier.FeatureKind.NOMINAL and _are_numbers(feature.categories)
    if infer or (is_new_role and are_numbers) or (given["role"] == "target" != feature.role and not feature.coded):
        del old["kind"]
    is_one_left = feature.kind is espalier.FeatureKind.BOOLEAN and len(kept) < len(feature.categories)
    if is_one_left or given.get("kind", old.get("kind")) != feature.kind:
        old.pop("categories", None)
    elif feature.coded:
        old["categories"] = kept
    return {**old, **given}


def _are_numbers(labels: Sequence[espalier.Label]) -> bool:
    """Return whether the labels are different numbers, each spelled as usual, so that numbers can replace them."""
    numbers = {espalier.number_from_text(text): text for text in map(str, labels)}
    are_usual = [text in (str(number), f"{number:.0f}") for number, text in numbers.items() if number is not None]
    return len(labels) == are_usual.count(True)


def _cells(feature: espalier.Feature, column: Any, kind: str | None, tokens: Collection[str]) -> Iterator[Any]:
    """Yield the cells of a column as a caller would upload them for the new kind."""
    alone = espalier.Dataset(espalier.Schema((feature,)), (column,))
    as_label = not feature.coded and kind != "numeric"
    for row in alone.rows():
        label: Any = row[feature.name]
        if isinstance(label, bool) and espalier.label_text(label) in tokens:
            yield espalier.label_text(label)
        elif as_label and isinstance(label, float) and label.is_integer() and abs(label) < 2**53:
            yield int(label)
        else:
            yield label
