"""Work that is shared out over threads, and the memory that it is done in."""

import mmap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from espalier.kernels.work_list import WorkList
from espalier.memory import LARGE_PAGE, LEAST_IN_LARGE_PAGES, large_array, lines
from espalier.processors import in_threads_if_many


def test_the_largest_piece_comes_first_and_of_equals_the_one_that_was_there_first() -> None:
    done = []

    def halves(piece: tuple[int, str]) -> list[tuple[int, str]]:
        done.append(piece)
        return [(piece[0] // 2, "left"), (piece[0] // 2, "right")] if piece[0] > 2 else []

    WorkList([(3, "a"), (8, "b"), (3, "c")], size=lambda piece: piece[0]).work_off(halves)
    fours = [(4, "left"), (2, "left"), (2, "right")]
    assert done[:3] == [(8, "b"), (4, "left"), (4, "right")]
    assert done[3:5] == [(3, "a"), (3, "c")]
    assert sorted(done[5:]) == sorted(2 * fours[1:] + 2 * [(1, "left"), (1, "right")])


def test_a_thread_that_finds_nothing_waits_for_what_another_still_brings() -> None:
    threads: dict[int, set[int]] = {0: set(), 1: set()}
    both = threading.Barrier(2, timeout=20)

    def do(generation: int) -> list[int]:
        threads[generation].add(threading.get_ident())
        if generation == 0:
            return [1, 1]
        both.wait()  # passed only if the thread that had nothing at first took one of these two
        return []

    work = WorkList([0], size=lambda _: 1)
    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(work.work_off, do) for _ in range(2)]:
            each.result()
    assert len(threads[0]) == 1
    assert len(threads[1]) == 2


def test_a_piece_that_fails_ends_its_thread_and_no_other() -> None:
    done = []

    def do(piece: int) -> list[int]:
        if piece == 5:
            raise ValueError("five")
        done.append(piece)
        return []

    work = WorkList(range(8), size=lambda piece: piece)
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(work.work_off, do) for _ in range(2)]
    assert [str(end.exception()) for end in ends if end.exception()] == ["five"]
    assert sorted(done) == [0, 1, 2, 3, 4, 6, 7]


@pytest.mark.parametrize("size", [0, 3, LARGE_PAGE // 8 - 1, LARGE_PAGE // 8, 3 * LARGE_PAGE])
def test_a_large_array_holds_what_is_written_to_it(size: int) -> None:
    array = large_array(size, np.float64)
    assert array.shape == (size,)
    assert array.dtype == np.float64
    array[:] = np.arange(size)
    assert array.sum() == size * (size - 1) / 2


@pytest.mark.parametrize("fails", ["mapping", "advising"])
def test_a_system_without_large_pages_gives_ordinary_ones(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(mmap.mmap):
        def __new__(cls, *arguments: object, **named: object) -> "Stubborn":
            if fails == "mapping":
                raise OSError("no memory")
            return super().__new__(cls, *arguments, **named)  # type: ignore[call-overload, no-any-return]

        def madvise(self, *_: int) -> None:
            raise OSError("invalid argument")

    monkeypatch.setattr(mmap, "mmap", Stubborn)
    array = large_array(2 * LARGE_PAGE, np.uint8)
    array[:] = 7
    assert (array.base is None) == (fails == "mapping")  # numpy's own memory, or the system's in small pages
    assert array.sum(dtype=np.int64) == 14 * LARGE_PAGE


@pytest.mark.parametrize(("n_cells", "n_threads"), [(999_999, 1), (1_000_000, 2)])
def test_few_cells_make_no_threads(n_cells: int, n_threads: int) -> None:
    here = threading.get_ident()
    found = in_threads_if_many(n_cells, lambda _: threading.get_ident(), range(2))
    assert (found == [here, here]) == (n_threads == 1)


def test_the_middle_of_lines_that_is_given_back_takes_nothing_with_it():
    length = LEAST_IN_LARGE_PAGES // np.dtype(np.uint32).itemsize
    table = lines(3, length, np.uint32)
    table.array[:] = 7
    table.give_back(5_000, 200_000)
    kept = np.r_[0:5_000, 200_000:length]
    assert np.all(table.array[:, kept] == 7)
    assert np.count_nonzero(table.array == 0) > 3 * 190_000  # whole pages of it
