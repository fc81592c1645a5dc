"""The one decorator of compiled functions, and where their machine code is kept."""

import contextlib
import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import numba
from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import AnnotateTypes

__all__ = ["cache_folder", "compiled", "inner", "phase_of"]

Function = TypeVar("Function", bound=Callable[..., Any])
CACHE_VARIABLE: Final = "NUMBA_CACHE_DIR"
IMPORTED: Final = re.compile(r"espalier\.kernels(?:\.|\s+import\s+)(\w+)")


def inner(function: Function) -> Function:
    """Compile a function that only compiled functions call: without the wrappers that take Python's objects apart.

    Those are the larger part of the machine code of a function of many arrays, and of the time to make it. A constant
    argument or a shorter whole number does not make a second version either. It must not make arrays: it does not count
    references to those that it is given.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False, "pipeline_class": _InnerCompiler}
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if hasattr(dispatcher, "py_func"):
        template_of = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, kws: template_of(tuple(map(_widened, args)), kws)
    return dispatcher  # type: ignore[no-any-return]


class _InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into its callers and never runs by itself.

    numba optimises and emits every function with all that it calls, so that a function ten calls deep is optimised ten
    times: two thirds of the time of a first start. Here that is left to the one kernel that Python calls.
    """

    def finalize(self) -> None:
        """Link what this calls, and leave the rest to the caller."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    @property
    def codegen(self) -> Any:
        """Give what keeps a function's Python environment: of no use to code without Python in it."""
        return _NoEnvironment()

    def get_pointer_to_function(self, _name: str) -> int:
        """Give no address: there is no machine code."""
        return 0


class _NoEnvironment:
    """Takes the place of a code generator where a function's environment is set."""

    def set_env(self, _name: str, _environment: Any) -> None:
        """Do nothing."""


@register_pass(mutates_CFG=True, analysis_only=False)
class _KeepAside(LoweringPass):  # type: ignore[misc]
    """Give a function that only compiled ones call the library for it."""

    _name = "espalier_keep_aside"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Make the library before the code is lowered into it."""
        state.library = _InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return False


class _InnerCompiler(CompilerBase):  # type: ignore[misc]
    """numba's own pipeline with `_KeepAside` before the lowering."""

    def define_pipelines(self) -> list[Any]:
        """Give the pipeline."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(_KeepAside, AnnotateTypes)
        pipeline.finalize()
        return [pipeline]


def _widened(kind: Any) -> Any:
    """Give the type of a variable that can hold what an argument of this type says."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind


def compiled(function: Function) -> Function:
    """Compile a function on its first call: no interpreter lock, no fast-math, IEEE division, kept on disk if possible.

    Without a folder to keep it in, it is compiled anew in each process. With ``NUMBA_DISABLE_JIT=1`` it stays Python.
    """
    dispatcher = numba.njit(nogil=True, error_model="numpy")(function)
    if hasattr(dispatcher, "py_func") and cache_folder(Path(function.__code__.co_filename)) is not None:
        # What enable_caching() does, with a folder of our own choice.
        dispatcher._cache = KernelCache(dispatcher.py_func)
    return dispatcher  # type: ignore[no-any-return]


def cache_folder(path: Path) -> Path | None:
    """Give the folder of the machine code of a kernel file, or None where none can be written or read.

    Its name holds a hash of that file and of every kernel file that it imports, however indirectly: numba does not
    notice an edit in a *called* function of another file. A folder that is already filled is used even if it cannot be
    written, as in a read-only image.
    """
    return _folder_of(sources_hash(path))


@functools.cache
def _folder_of(digest: str) -> Path | None:
    for base in _bases():
        folder = base / f"espalier-{digest[:16]}"
        if folder.is_dir() and any(folder.glob("*.nbi")):
            return folder
        if _is_writable(folder):
            return folder
    return None


@functools.cache
def sources_hash(path: Path) -> str:
    """Give the SHA-256 over a kernel file, those that it imports, and numba's version."""
    # Code with its indexes checked is other code.
    digest = hashlib.sha256(f"{numba.__version__} {numba.config.BOUNDSCHECK}".encode())
    waiting, seen = [path, Path(__file__)], {path, Path(__file__)}
    while waiting:
        source = waiting.pop().read_text(encoding="utf-8")
        digest.update(source.encode())
        for name in sorted(set(IMPORTED.findall(source))):
            imported = path.parent / f"{name}.py"
            if imported.is_file() and imported not in seen:
                seen.add(imported)
                waiting.append(imported)
    return digest.hexdigest()


def phase_of(kernel: Any, phase: str) -> str:
    """Name a phase that begins with this kernel; where its machine code is not kept yet, compiling is part of it."""
    function = getattr(kernel, "py_func", kernel)
    path = Path(function.__code__.co_filename)
    folder = cache_folder(path)
    warm = folder is not None and any(folder.glob(f"{path.stem}.{function.__qualname__}-*.nbi"))
    return phase if warm else f"compiling kernels, then {phase}"


class _KernelLocator(_CacheLocator):  # type: ignore[misc]
    """Keeps a kernel in the folder of its file; the folder's name says which sources, so the stamp need not."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._path = Path(py_file)
        self._place = f"{self._path.stem}.{py_func.__qualname__}"

    def get_cache_path(self) -> str:
        return str(cache_folder(self._path))

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
    """numba's function cache in a folder of our own, silent where it cannot write."""

    _impl_class = _KernelCacheImpl

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep one compiled signature; a full disk or a read-only folder costs time, not the training."""
        try:
            super().save_overload(sig, data)
        except OSError:
            return


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
