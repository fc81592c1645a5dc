"""Columns in a temporary file: what is written comes back, joined, or memory-mapped."""

import io
import resource
from contextlib import contextmanager
from mmap import mmap

import numpy as np
import pytest
from hypothesis import given, strategies as st

import espalier
from espalier.data import readers
from espalier.data.spill import Spill

parts = st.lists(st.integers(0, 40), max_size=6)


@given(columns=st.lists(st.tuples(parts, st.sampled_from([np.float64, np.int32])), min_size=1, max_size=5))
def test_the_parts_of_each_column_are_joined_in_their_order(columns):
    spill = Spill()
    stored, expected = [], []
    for sizes, dtype in columns:
        arrays = [np.arange(size, dtype=dtype) + 7 * place for place, size in enumerate(sizes)]
        stored.append(([spill.write(array) for array in arrays], dtype))
        expected.append(np.concatenate([np.empty(0, dtype), *arrays]))
    joined = [spill.read(*column) for column in stored]
    written = [(spill.write(array), array.dtype) for array in joined]
    spill.write(np.zeros(1))  # an empty file cannot be mapped
    found = spill.mapped(written)
    spill.close()
    for array, whole in zip(found, expected, strict=True):
        assert array.dtype == whole.dtype
        np.testing.assert_array_equal(array, whole)


@contextmanager
def no_room():
    """Have the system take not a byte for any file."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def test_a_full_disk_is_an_error_of_the_system():
    spill = Spill()
    with no_room(), pytest.raises(OSError, match="File too large"):
        spill.write(np.array([1.0, 2.0, 3.0]))
    spill.close()


def buffer_of(array):
    """The object whose memory an array shows."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.obj if isinstance(array, memoryview) else array.base
    return array


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_a_table_that_outgrows_memory_is_the_same_data_set_and_can_be_learned_from(form, monkeypatch):
    rows = [{"x": n % 97 / 4, "c": "uvw"[n % 3], "t": n if n < 2_900 else "none", "y": "ab"[n % 5 > 2]}
            for n in range(3_000)]  # fmt: skip
    if form == "csv":
        lines = ["x,c,t,y", *(",".join(map(str, row.values())) for row in rows)]
        content = "\n".join(lines).encode()
    else:
        content = "\n".join(str(row).replace("'", '"') for row in rows).encode()
    whole = espalier.read_table(io.BytesIO(content), form, target="y")
    monkeypatch.setattr(readers, "MAX_BYTES_IN_MEMORY", 1_000)
    mapped = espalier.read_table(io.BytesIO(content), form, target="y")
    assert all(isinstance(buffer_of(column), mmap) for column in mapped.columns)
    assert not any(isinstance(buffer_of(column), mmap) for column in whole.columns)
    assert mapped == whole
    assert mapped.rows() == whole.rows()
    assert espalier.to_json(espalier.train(mapped)) == espalier.to_json(espalier.train(whole))
