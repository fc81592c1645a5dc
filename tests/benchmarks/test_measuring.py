import re
from pathlib import Path

from benchmarks.measuring import Subject, measure
from benchmarks.tables import GENERATED, read, write

WORKS = "tests.benchmarks.works"


def test_the_subjects_take_turns_and_describe_their_last_result(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    subjects = [
        Subject(mark, f"{WORKS}:noting", {"file": str(notes), "mark": mark}, short_seconds=0.1) for mark in "ab"
    ]

    found = measure(subjects, repetitions=2, pause=0)

    # What is short is done again and again in its turn.
    assert re.fullmatch("(aa+bb+){2}", notes.read_text())
    assert {name: each.facts for name, each in found.items()} == {"a": {"mark": "a"}, "b": {"mark": "b"}}
    assert all(each.seconds is not None and each.seconds >= 0 for each in found.values())


def test_a_peak_is_what_the_turn_itself_took() -> None:
    megabytes = 64
    found = measure(
        [Subject("filling", f"{WORKS}:filling", {"n_bytes": megabytes * 2**20}, short_seconds=0.1)],
        repetitions=1,
        pause=0,
    )

    # The bytes and the bytearray that is made of them live at the same time.
    peak = found["filling"].peak_bytes
    assert peak is not None
    assert 1.9 * megabytes < peak / 2**20 < 2.5 * megabytes


def test_a_subject_that_fails_says_why_and_stops_nobody(tmp_path: Path) -> None:
    subjects = [
        Subject("refuses", f"{WORKS}:refusing", {"words": "not of this shape"}),
        Subject("dies", f"{WORKS}:dying"),
        Subject("is not there", f"{WORKS}:absent"),
        Subject("works", f"{WORKS}:noting", {"file": str(tmp_path / "notes.txt"), "mark": "x"}, short_seconds=0.1),
    ]

    found = measure(subjects, repetitions=1, pause=0)

    assert found["refuses"].fault == "ValueError: not of this shape"
    assert found["dies"].fault == "ended with exit code 3"
    assert found["is not there"].fault is not None
    assert "absent" in found["is not there"].fault
    assert found["works"].fault is None


def test_the_tables_have_the_shapes_that_their_titles_say(tmp_path: Path) -> None:
    shapes = {"two_classes": (20, 2), "three_classes": (20, 3), "mixed": (20, 2), "land": (54, 7)}
    assert set(shapes) | {"regression"} == set(GENERATED)

    for name, (n_columns, n_classes) in shapes.items():
        training, held_out = read(write(name, 5_000, tmp_path))
        assert training.features.shape == (5_000, n_columns)
        assert held_out.features.shape == (1_000, n_columns)
        assert len(set(training.target.tolist())) == n_classes
    assert read(write("regression", 5_000, tmp_path))[0].is_regression
