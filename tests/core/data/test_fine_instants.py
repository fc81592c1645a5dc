"""Instants finer than a microsecond are cut off to it, and a notice says so, whatever they come in."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas
import pyarrow as pa
import pytest

from espalier import Dataset, dataset_from_arrow, dataset_from_columns, dataset_from_csv, dataset_from_rows

DECLARED: dict[str, Any] = {"schema": {"columns": [{"name": "a", "kind": "datetime"}]}}


def test_instants_finer_than_a_microsecond_are_cut_off_and_told() -> None:
    ticks = np.array([1_700_000_000_123_456_789, -1, 0])
    for data in (
        dataset_from_arrow(pa.table({"a": pa.array(ticks).cast(pa.timestamp("ns"))})),
        dataset_from_columns({"a": ticks.astype("datetime64[ns]")}),
    ):
        assert data.columns[0].tolist() == [1_700_000_000_123_456 / 10**6, -1 / 10**6, 0.0]
        assert any("finer than a microsecond" in str(notice) for notice in data.notices)
    texts = ["2023-11-14T22:13:20.123456789", "1969-12-31T23:59:59.999999999", "1970-01-01"]
    assert (
        dataset_from_csv("\n".join(["n,a", *(f"1,{text}" for text in texts)]), **DECLARED).columns[1].tolist()
        == data.columns[0].tolist()
    )


FINER = pandas.to_datetime([1_501, 0], unit="ns")
TEXTS = ["1970-01-01T00:00:00.000001501", "1970-01-01"]


@pytest.mark.parametrize(
    "read",
    [
        lambda: dataset_from_arrow(pa.table({"a": pa.array(FINER).dictionary_encode()})),
        lambda: dataset_from_arrow(pa.table({"a": pa.array(FINER.tz_localize("UTC")).dictionary_encode()})),
        lambda: dataset_from_arrow(pandas.DataFrame({"a": pandas.Categorical(FINER)})),
        lambda: dataset_from_arrow(pandas.DataFrame({"a": np.array([*FINER, None], object)[:2]})),
        lambda: dataset_from_columns({"a": np.array(list(FINER), object)}),
        lambda: dataset_from_rows([{"a": each} for each in FINER]),
        lambda: dataset_from_rows([{"a": each.to_numpy()} for each in FINER]),
        lambda: dataset_from_columns({"a": np.array([1_501_000, 0], "datetime64[ps]")}),
        lambda: dataset_from_rows([{"a": each} for each in TEXTS], **DECLARED),
        lambda: dataset_from_csv("\n".join(["a,b", *(f"{each},1" for each in TEXTS)]), **DECLARED),
        lambda: dataset_from_arrow(pa.table({"a": TEXTS}), **DECLARED),
        lambda: dataset_from_columns({"a": np.array(TEXTS)}, **DECLARED),
    ],
)
def test_instants_finer_than_a_microsecond_are_told_whatever_they_come_in(read: Callable[[], Dataset]) -> None:
    data = read()
    assert data.columns[0].tolist() == [1e-6, 0.0]
    assert [notice.code for notice in data.notices if notice.attribute == "a"] == ["finer_than_microseconds"]


def test_instants_that_are_ordered_categories_or_stand_beside_texts_are_told_if_they_are_cut_off() -> None:
    ordered = dataset_from_arrow(pandas.DataFrame({"a": pandas.Categorical(FINER, ordered=True)}))
    mixed = dataset_from_rows([{"a": FINER[0]}, {"a": "unknown"}])
    for data in (ordered, mixed):
        assert "1970-01-01T00:00:00.000001" in data.schema.features[0].categories
        assert [notice.code for notice in data.notices][:1] == ["finer_than_microseconds"]


def test_instants_of_whole_microseconds_are_not_told_whatever_digits_their_texts_have() -> None:
    whole = ["2020-01-01T00:00:00.123456000", "2020-01-01T00:00:00,5"]
    for data in (
        dataset_from_rows([{"a": each} for each in whole], **DECLARED),
        dataset_from_columns({"a": np.array([1_000_000, 0], "datetime64[ps]")}),
        dataset_from_rows([{"a": "0.1234567"}, {"a": "x"}, {"a": "y"}]),  # no instants
    ):
        assert not any(notice.code == "finer_than_microseconds" for notice in data.notices)


def test_both_hours_of_a_time_change_are_different_instants() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    second = first.replace(fold=1)
    assert first == second  # so Python says
    found = dataset_from_rows([{"at": first}, {"at": second}, {"at": first}])
    assert [cell - found.columns[0][0] for cell in found.columns[0].tolist()] == [0.0, 3600.0, 0.0]
