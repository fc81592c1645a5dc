"""Progress of a command on standard error: a bar on a terminal if rich is installed, else a line every ten seconds."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

import espalier

LINE_SECONDS: Final = 10.0
BAR_WIDTH: Final = 30
NOT_DRAWN_ON: Final = ("dumb", "unknown")  # values of TERM for terminals on which lines cannot be replaced


@contextmanager
def shown_progress() -> "Iterator[espalier.Progress]":
    """Show the progress of the block on standard error, as a bar or as lines."""
    progress = espalier.Progress()
    progress.begin("loading")
    draws = sys.stderr.isatty() and os.environ.get("TERM") not in NOT_DRAWN_ON and find_spec("rich") is not None
    with _bar(progress) if draws else _lines(progress):
        yield progress


def _bar(progress: "espalier.Progress") -> Any:
    from rich.console import Console
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    def line() -> Table:
        bar = ProgressBar(total=1.0, completed=progress.share, width=BAR_WIDTH)
        row = Table.grid(padding=(0, 1))
        row.add_row(bar, f"{progress.share:4.0%}", progress.phase)
        return row

    # Standard output may be a file or a pipe, so it is not redirected. Notices appear above the bar.
    return Live(get_renderable=line, console=Console(stderr=True), transient=True, redirect_stdout=False)


@contextmanager
def _lines(progress: "espalier.Progress") -> Iterator[None]:
    is_over = threading.Event()

    def report() -> None:
        while not is_over.wait(LINE_SECONDS):
            print(f"espalier: {progress.share:.0%} done, {progress.phase}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
