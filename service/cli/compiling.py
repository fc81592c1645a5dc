"""The command that compiles before anybody waits for it: when an image is made, or after an installation."""

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from service.cli.command import Command, Refused


def compile_all(_: Namespace) -> int:
    """Compile all kernels, in two processes where there are two processors."""
    # Imported here: `espalier --help` needs no kernels.
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415
    from multiprocessing import get_context  # noqa: PLC0415

    import espalier  # noqa: PLC0415

    if espalier.warm_up([]) is None:
        raise Refused("compiled code cannot be kept: name a folder that can be written in NUMBA_CACHE_DIR")
    print("Compiling all kernels, a minute or two ...", flush=True)
    began = time.monotonic()
    n_processes = min(len(espalier.WARM_UPS), os.cpu_count() or 1)
    with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool:
        folders = list(pool.map(espalier.warm_up, [(name,) for name in espalier.WARM_UPS]))
    print(f"Compiled in {time.monotonic() - began:.0f} s; kept in {folders[0]}")
    return 0


def _no_arguments(_: ArgumentParser) -> None:
    pass


COMMANDS: Mapping[str, Command] = {
    "compile": Command("compile all kernels now, not at the first training", _no_arguments, compile_all)
}
