"""Rows of JSON that compiled code reads are those that a reader of all JSON gives; the rest is left to it."""

import json
import struct
import tracemalloc
from typing import Any

import hypothesis
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier import Feature, FeatureKind, JsonReader, Schema

# Sums and products of 64 bits are to wrap around; of numbers that stay Python numpy says so.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
DRAWS = hypothesis.settings(max_examples=300, deadline=None)
WINDS = ("weak", 'so "strong"', "böig", "a}b]", "back\\slash")
SCHEMA = Schema(
    (
        Feature("size", FeatureKind.NUMERIC),
        Feature("wind", FeatureKind.NOMINAL, categories=WINDS),
        Feature("grö\\ße", FeatureKind.NUMERIC),
    ),
    ("?",),
)
READER = JsonReader(SCHEMA)
floats = st.floats(allow_nan=False, allow_infinity=False).map(repr)
whole = st.integers(-(2**53), 2**53).map(str)
points = st.builds(
    "{}{}.{}{}".format,
    st.sampled_from(["", "-"]),
    st.integers(0, 10**18),
    st.text("0123456789", min_size=1, max_size=20),
    st.sampled_from(["", "e5", "E-7", "e+0", "e-300", "E22"]),
)
small = st.builds(lambda zeros, number: f"0.{'0' * zeros}{number}", st.integers(0, 20), st.integers(1, 2**60))
halves = st.builds(lambda odd, by: f"{2**53 + 2 * odd + 1 + by}.0", st.integers(0, 2**51), st.integers(-1, 1))
numbers = floats | whole | points | small | halves


def read(content: bytes, *, most_rows: int = 1000) -> list[dict[str, Any]] | None:
    found = READER.read(content, 0, most_rows=most_rows)
    return None if found is None else [*found.dataset.rows(), {"end": found.end}]


def bits(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else struct.pack("<d", value)


@DRAWS
@given(st.lists(numbers, min_size=1))
def test_a_number_is_the_nearest_double(texts: list[str]) -> None:
    for text in texts:
        found = read(f'[{{"size":{text}}}]'.encode())
        significant = text.lstrip("-").partition("e")[0].partition("E")[0].replace(".", "").lstrip("0")
        if found is not None:
            assert bits(found[0]["size"]) == bits(float(orjson.loads(text)))
        else:  # more than a word, or at the edge of what there is
            assert len(significant) > 19 or abs(float(text)) < 1e-300 or abs(float(text)) > 1e300


@pytest.mark.parametrize("text", ["0", "-0", "0.0", "-0.0", "7", "9007199254740992", "1e22", "-1.5E+3", "1e-7", "0e0"])
def test_numbers_as_programs_write_them_are_read(text: str) -> None:
    found = read(f'[{{"size":{text}}}]'.encode())
    assert found is not None
    assert bits(found[0]["size"]) == bits(float(orjson.loads(text)))


@pytest.mark.parametrize("spelt", [{}, {"ensure_ascii": False}, {"indent": 1}, {"separators": (",", ":")}])
def test_rows_are_read_as_clients_write_them(spelt: dict[str, Any]) -> None:
    rows = [
        {"grö\\ße": place / 7, "wind": None if place == 3 else WINDS[place % len(WINDS)], "size": place or None}
        for place in range(50)
    ]
    content = json.dumps(rows, **spelt).encode()
    assert read(content + b' , "explain": "none"}') == [*rows, {"end": len(content)}]
    assert read(content, most_rows=49) is None


@pytest.mark.parametrize(
    "content",
    [
        "[]", "{}", "[1]", "[{}]", "", "[", '[{"size":1}', '[{"size":1},]', '[{"size":1}{"size":1}]', '[{"size":1,}]',
        '[{"size":1},{"size":1,"wind":null}]', '[{"size":1,"wind":null},{"wind":null,"size":1}]', '[{"size":1},{}]',
        '[{"size":1,"size":1}]', '[{"depth":1}]', '[{"size":true}]', '[{"size":"1"}]', '[{"size":nul}]',
        '[{"size":NaN}]', '[{"size":01}]', '[{"size":+1}]', '[{"size":.5}]', '[{"size":5.}]', '[{"size":1e}]',
        '[{"size":-}]', '[{"size":1_0}]', '[{"size":9007199254740993}]', '[{"size":1e999}]', '[{"size":1.2.3}]',
        '[{"size":[1]}]', "[{size:1}]", "[{'size':1}]", '[{"wind":"storm"}]', '[{"wind":"?"}]', '[{"wind":"weak}]',
        '[{"wind":weak}]', '[{"wind":1}]', '[{"size":1 1}]', '[{"size":0x1}]', '[{"size"=1}]', '[{"size":1e5',
        '[{"wind":"a}b]', '[{"wind":"a}b]"', '[{"size',
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_others(content: str) -> None:
    assert read(content.encode()) is None


def test_a_number_that_means_missing_a_date_and_many_categories_are_left_to_others() -> None:
    content = b'[{"size":1}]'
    features = {
        "-999": Feature("size", FeatureKind.NUMERIC),
        "?": Feature("size", FeatureKind.DATETIME),
        "NA": Feature("size", FeatureKind.NOMINAL, categories=tuple(map(str, range(1000)))),
    }
    for mark, feature in features.items():
        assert JsonReader(Schema((feature,), (mark,))).read(content, 0, most_rows=5) is None
    assert JsonReader(SCHEMA, most_chars=3).read(b'[{"wind":"weak"}]', 0, most_rows=5) is None


@pytest.mark.parametrize(
    "text", ['[{"size":SPACES"x"1}]', '[{"size":SPACES["x"]}]', '[{"size":1SPACES"', '[{"size":SPACES']
)
def test_a_long_row_that_is_not_plain_is_looked_at_once(text: str) -> None:
    # Where each place of a megabyte is tried with each other, this takes hours.
    assert read(text.replace("SPACES", " " * 2**20).encode()) is None


def test_of_names_that_are_no_attributes_nothing_is_kept() -> None:
    reader = JsonReader(SCHEMA)
    tracemalloc.start()
    for sign in "abcd":
        assert reader.read(f'[{{"{sign * 2**20}":1}}]'.encode(), 0, most_rows=5) is None
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2**20


tokens = st.sampled_from(
    [
        '{"size":', '{"wind":', ',"size":', ',"wind":', '"weak"', '"storm"', "1.5", "-2e3", "null", "}", ",", "{", "[",
        "]", " ", "\n", '"',
    ]
)  # fmt: skip
sizes = st.sampled_from(["1.5", "-0", "null", "1e400", "true"])
winds = st.sampled_from(['"weak"', '"b\\u00f6ig"', '"x"'])
rows_of_both = st.lists(st.builds('{{"size":{}, "wind":{}}}'.format, sizes, winds), min_size=1, max_size=4).map(
    lambda rows: f"[{','.join(rows)}]"
)


def as_read(cell: Any) -> Any:
    return bits(cell if cell is None or isinstance(cell, str) else float(cell))


@hypothesis.settings(max_examples=1000, deadline=None)
@given(rows_of_both, st.lists(st.tuples(st.integers(0, 150), st.integers(0, 3), tokens), max_size=2))
def test_whatever_is_read_is_json_and_means_the_same(text: str, edits: list[tuple[int, int, str]]) -> None:
    for place, n_signs, token in edits:
        text = text[:place] + token + text[place + n_signs :]
    found = read(text.encode())
    if found is None:
        return
    end = found.pop()["end"]
    rows = orjson.loads(text.encode()[:end])
    assert [{name: bits(cell) for name, cell in row.items()} for row in found] == [
        {name: as_read(cell) for name, cell in row.items()} for row in rows
    ]
