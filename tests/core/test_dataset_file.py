"""Cells in a file: what was appended comes back, wherever it is by then."""

import os
import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier.dataset_file import CellFile, Segment, StoredColumn


@pytest.fixture(params=["by place", "by turns"], autouse=True)
def calls(request):
    """The calls of this system, and none that name a place, as on Windows."""
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "by turns":
            patched.delattr(os, "preadv")
            patched.delattr(os, "pwritev")
        yield


arrays = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([np.float64, np.int32]), st.booleans()), min_size=1, max_size=30
)


@given(arrays, st.sampled_from([0, 1, 100, 10**6]))
def test_what_is_appended_comes_back_from_memory_and_from_the_file(drawn, in_memory):
    file = CellFile(in_memory)
    kept = []
    for number, (n_items, dtype, is_read_at_once) in enumerate(drawn):
        array = np.arange(n_items, dtype=dtype) + number
        kept.append((file.append(array), array))
        if is_read_at_once:
            np.testing.assert_array_equal(file.read(kept[-1][0], n_items, dtype), array)

    for place, array in kept:
        np.testing.assert_array_equal(file.read(place, len(array), array.dtype), array)
    file.close()


def test_more_arrays_than_the_system_takes_at_once_are_written_in_several_calls():
    file = CellFile(8 * 5_000)

    places = [file.append(np.array([float(number)])) for number in range(12_345)]

    assert [file.read(place, 1, np.float64)[0] for place in places] == list(range(12_345))


@contextmanager
def no_room():
    """Have the system take not a byte for any file."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def test_what_could_not_be_written_waits_and_is_written_later():
    file = CellFile(0)
    with no_room(), pytest.raises(OSError, match="File too large"):
        file.append(np.array([1.0, 2.0, 3.0]))

    place = file.append(np.array([9.0]))

    assert file.read(0, 3, np.float64).tolist() == [1.0, 2.0, 3.0]
    assert file.read(place, 1, np.float64).tolist() == [9.0]


def test_several_threads_append_and_read():
    file = CellFile(1_000)

    def work(number: int) -> bool:
        array = np.full(300, float(number))
        place = file.append(array)
        return bool((file.read(place, 300, np.float64) == array).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(500)))


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=8),
    st.integers(0, 80),
    st.integers(0, 80),
    st.booleans(),
)
def test_a_stretch_of_a_column_is_that_of_its_segments(drawn, start, stop, is_labelled):
    file, segments, whole = CellFile(50), [], []
    table = np.array([7, 8, 9, -1], dtype=np.int32) if is_labelled else None
    missing = -1 if is_labelled else np.nan
    for n_rows, is_missing in drawn:
        places = np.arange(n_rows, dtype=np.int32) % 4 - 1
        cells = places if is_labelled else places.astype(np.float64)
        segments.append(Segment(len(whole), n_rows, None if is_missing else file.append(cells)))
        shown = cells if table is None else table[cells]
        whole += [missing] * n_rows if is_missing else shown.tolist()
    column = StoredColumn(tuple(segments), table, np.int32 if is_labelled else np.float64)

    stop = min(stop, len(whole))
    np.testing.assert_array_equal(column.read(file, min(start, stop), stop), np.array(whole[min(start, stop) : stop]))


def test_a_file_that_is_closed_gives_nothing():
    file = CellFile(0)
    place = file.append(np.zeros(3))
    file.close()

    with pytest.raises((ValueError, IndexError, OSError)):
        file.read(place, 3, np.float64)
