"""Where the machine code of kernels is kept, and by whom it is found again.

::

    kept for             found by
    one processor        processes on a machine with the same processor
    a named baseline     every machine whose processor has all that the name stands for: so an image is made,
                         with NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES= while it compiles

Folders are asked in this order: that of NUMBA_CACHE_DIR, the package's own, the user's. The first that may be written
takes what is compiled, and those after it are left alone; those before it are read: in an image, the package's own.
"""

import contextlib
import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.codegen import get_host_cpu_features
from numba.core.registry import cpu_target

try:
    from fcntl import LOCK_EX, flock
except ImportError:  # no such locks on Windows
    flock = None  # type: ignore[assignment]

CACHE_VARIABLE: Final = "NUMBA_CACHE_DIR"
PACKAGE: Final = Path(__file__).parents[1]
IMPORTED: Final = re.compile(r"from espalier\.((?:\w+\.)*kernels)(?:\.(\w+))? import (\([^)]*\)|.*)")
SECOND_LEVEL: Final = frozenset({"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"})
THIRD_LEVEL: Final = frozenset({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"})
BASELINES: Final[Mapping[str, frozenset[str]]] = {"x86-64-v3": SECOND_LEVEL | THIRD_LEVEL, "generic": frozenset()}
"""What a processor must have to run the code of a baseline, by LLVM's names (x86-64 psABI, section 3.1.1)."""


def cache_folder(path: Path) -> Path | None:
    """Give the folder that the machine code of a kernel file is written to, or None where none can be written.

    Its name holds a hash of that file and of every kernel file that it imports, however indirectly: numba does not
    notice an edit in a *called* function of another file.
    """
    return _folders(sources_hash(path))[1]


def filled_folders(path: Path) -> tuple[Path, ...]:
    """Give the folders that hold machine code of a kernel file: of those that are read, and the one that is written."""
    readable, written = _folders(sources_hash(path))
    return tuple(folder for folder in (*readable, written) if folder is not None and any(folder.glob("*.nbi")))


def kept_code() -> tuple[Path | None, int]:
    """Give the folder below which machine code would be written (None: nowhere), and how many kernels are kept."""
    n_kept = 0
    names = {f"espalier-{sources_hash(path)[:16]}" for path in PACKAGE.glob("**/kernels/*.py")}
    for base in _bases():
        n_kept += sum(1 for name in names for _ in (base / name).glob("*.nbi"))
        if _may_be_written(base):
            return base, n_kept
    return None, n_kept


def baselines_of(features: str) -> tuple[str, ...]:
    """Give the baselines of a processor, best first; features: as LLVM lists them, "+avx,-avx2"."""
    has = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    return tuple(name for name, needed in BASELINES.items() if needed <= has)


@functools.cache
def sources_hash(path: Path) -> str:
    """Give the SHA-256 over a kernel file, those that it imports, and numba's version."""
    # Code with its indexes checked is other code.
    digest = hashlib.sha256(f"{numba.__version__} {numba.config.BOUNDSCHECK}".encode())
    always = [PACKAGE / "kernels" / "jit.py", PACKAGE / "stats.py"]
    waiting, seen = [path, *always], {path, *always}
    while waiting:
        source = waiting.pop().read_text(encoding="utf-8")
        digest.update(source.encode())
        for folder, module, names in sorted(set(IMPORTED.findall(source))):
            for name in (module,) if module else re.findall(r"\w+", names):
                imported = PACKAGE.joinpath(*folder.split("."), f"{name}.py")
                if imported.is_file() and imported not in seen:
                    seen.add(imported)
                    waiting.append(imported)
    return digest.hexdigest()


class _KernelLocator(_CacheLocator):  # type: ignore[misc]
    """Keeps a kernel in the folder of its file; the folder's name says which sources, so the stamp need not."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._path = Path(py_file)
        self._place = f"{self._path.stem}.{py_func.__qualname__}"

    def get_cache_path(self) -> str:
        return str(cache_folder(self._path) or filled_folders(self._path)[0])

    def ensure_cache_path(self) -> None:
        """Nothing to do: `cache_folder` has made it."""

    def get_source_stamp(self) -> str:
        return sources_hash(self._path)

    def get_disambiguator(self) -> str:
        return self._place

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_KernelLocator":
        return cls(py_func, py_file)


class _KernelCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_KernelLocator,)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's function cache over several folders, of which one is written; silent where it cannot write."""

    _impl_class = _KernelCacheImpl

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        stamp, own = self._impl.locator.get_source_stamp(), Path(self.cache_path)
        folders = filled_folders(Path(py_func.__code__.co_filename))
        self._files = [self._cache_file]
        for folder in folders:
            if folder != own:
                self._files.append(IndexDataCacheFile(folder, self._impl.filename_base, stamp))

    def holds(self, signature: tuple[Any, ...]) -> bool:
        """Whether machine code for arguments of these types is kept that this processor can run."""
        keys = list(self._keys(signature, cpu_target.target_context.codegen()))
        return any(key in file._load_index() for file in self._files for key in keys)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep one compiled signature; a full disk or a read-only folder costs time, not the training."""
        with contextlib.suppress(OSError), self._alone():
            super().save_overload(sig, data)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        for key in self._keys(sig, target_context.codegen()):
            for file in self._files:
                data = file.load(key)
                if data is not None:
                    return self._impl.rebuild(target_context, data)
        return None

    def _keys(self, sig: Any, codegen: Any) -> Iterator[Any]:
        """Give the key of code made for this processor, then those of the baselines that it can run."""
        key = self._index_key(sig, codegen)
        yield key
        _, (triple, *_), code = key
        for name in _own_baselines():
            yield sig, (triple, name, ""), code

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one process write at a time.

        numba reads an index, adds a number to it, and writes it and the file of that number: two that do so at once for
        two signatures of a kernel leave an index that names the other's file.
        """
        with (Path(self.cache_path) / "lock").open("w") as lock:
            if flock is not None:
                flock(lock, LOCK_EX)
            yield


@functools.cache
def _own_baselines() -> tuple[str, ...]:
    return baselines_of(get_host_cpu_features())


@functools.cache
def _folders(digest: str) -> tuple[tuple[Path, ...], Path | None]:
    """Give the folders that are only read, and the one that is written."""
    readable: list[Path] = []
    for base in _bases():
        folder = base / f"espalier-{digest[:16]}"
        if _is_writable(folder):
            return tuple(readable), folder
        readable.append(folder)
    return tuple(readable), None


def _bases() -> list[Path]:
    bases = [Path(os.environ[CACHE_VARIABLE])] if os.environ.get(CACHE_VARIABLE) else []
    bases.append(Path(__file__).parent / "__pycache__")
    user = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):  # no home folder is known
        bases.append((Path(user) if user else Path.home() / ".cache") / "espalier")
    return bases


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _may_be_written(folder: Path) -> bool:
    """Whether a folder could be written, or made, as far as its rights tell."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
