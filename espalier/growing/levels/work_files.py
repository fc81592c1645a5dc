"""Storage of prepared columns and orders while a tree is grown: files of a work folder."""

import errno
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from espalier.arrays import Array
from espalier.errors import DataError, Fault

ENDING: Final = ".part"
"""End of the name of a file that is not yet complete."""


class ArrayStore(Protocol):
    """Named arrays, each written once from its beginning to its end."""

    def writer(self, name: str) -> AbstractContextManager[Callable[[Array], Any]]:
        """Return a context manager that yields a function to append to an array. The array can be read afterwards."""

    def read(self, name: str, kind: npt.DTypeLike) -> Array:
        """Return a stored array; changes to it are not stored."""

    def remove(self, name: str) -> None:
        """Remove an array, if it exists."""


def store_array(store: ArrayStore, name: str, array: Array) -> None:
    """Write an array as a whole."""
    with store.writer(name) as write:
        write(array)


class FolderStore:
    """Arrays in files of a folder, memory-mapped when they are read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def writer(self, name: str) -> Any:
        """Yield a function that writes parts of an array to a file. The file gets its name at the end of the context.

        Raises:
            DataError: The disk is full, or the folder cannot be written to.
            MemoryError: An array that is read inside the context cannot be mapped.
        """
        unfinished = self.folder / (name + ENDING)
        try:
            with unfinished.open("wb") as file:
                yield lambda part: file.write(np.ascontiguousarray(part).data.cast("B") if len(part) else b"")
            unfinished.replace(self.folder / name)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            if error.errno == errno.ENOMEM:  # from mapping an array that is read inside the context
                raise MemoryError from error
            message = f"the work folder cannot be written to: {error.strerror or type(error).__name__}"
            raise DataError([Fault("/work", "not_writable", message)]) from error

    def read(self, name: str, kind: npt.DTypeLike) -> Array:
        """Return a copy-on-write map of a file; an array in memory if the file is empty."""
        path = self.folder / name
        if not path.stat().st_size:
            return np.zeros(0, kind)
        return np.memmap(path, kind, mode="c").view(np.ndarray)

    def remove(self, name: str) -> None:
        """Delete a file, if it exists."""
        (self.folder / name).unlink(missing_ok=True)
