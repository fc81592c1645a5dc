"""The one decorator of compiled functions: how numba compiles them here."""

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import numba
import numpy as np
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonRewrites,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)
from numba.extending import register_jitable

from espalier.kernels.interpreting import current
from espalier.kernels.kept import KernelCache, cache_folder, filled_folders

Function = TypeVar("Function", bound=Callable[..., Any])
ANSWERS: Final[dict[tuple[int, str], dict[Any, Any]]] = {}


def inner(function: Function) -> Function:
    """Compile a function that only compiled functions call: without the wrappers that take Python's objects apart.

    Those are the larger part of the machine code of a function of many arrays, and of the time to make it. A constant
    argument or a shorter whole number does not make a second version either. It must not make arrays: it does not count
    references to those that it is given.
    """
    return _kept_aside(function, counts_references=False)


def inlined(function: Function) -> Function:
    """Compile such a function into the place where it is called: each array is seven arguments of a call.

    For a function of many arrays that a kernel calls in a loop.
    """
    return _kept_aside(function, counts_references=False, forceinline=True)


def maker(function: Function) -> Function:
    """Compile such a function that makes arrays, and so counts references."""
    return _kept_aside(function, counts_references=True)


def shared(function: Function) -> Function:
    """Let compiled functions call a plain function of numbers, which stays Python for Python."""
    return register_jitable(**_inner_options(counts_references=False))(function)  # type: ignore[no-any-return]


def _inner_options(*, counts_references: bool) -> dict[str, Any]:
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _InnerCompiler}
    return {"nogil": True, "error_model": "numpy", "_nrt": counts_references, **options}


def _kept_aside(function: Function, *, counts_references: bool, **more: bool) -> Function:
    dispatcher = numba.njit(**_inner_options(counts_references=counts_references), **more)(function)
    if hasattr(dispatcher, "py_func"):
        dispatcher.__class__ = _Inner
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


class _RememberedContext:
    """numba's typing context, which finds out only once what an operation on given types is.

    It tries a hundred implementations of an addition or of an index for each one that it meets, again in each round of
    inference: a third of the time of a first start. Everything else is left to the context itself.
    """

    def __init__(self, context: Any, flags: Any) -> None:
        self._context = context
        # Implementations differ by the flags they are compiled with.
        self._answers = ANSWERS.setdefault((id(context), flags.get_mangle_string()), {})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        """Give the signature of a call; of functions of our own it is not remembered."""
        if not isinstance(function, types.Function):
            return self._context.resolve_function_type(function, args, kws)
        key = (function, tuple(args), tuple(dict(kws).items()))
        if key not in self._answers:
            self._answers[key] = self._context.resolve_function_type(function, args, kws)
        return self._answers[key]

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """Give the signature of an assignment to an item."""
        key = (operator.setitem, target, index, value)
        if key not in self._answers:
            self._answers[key] = self._context.resolve_setitem(target, index, value)
        return self._answers[key]


@register_pass(mutates_CFG=True, analysis_only=False)
class _InferTypes(NopythonTypeInference):  # type: ignore[misc]
    """numba's type inference with `_RememberedContext`."""

    _name = "espalier_infer_types"

    def run_pass(self, state: Any) -> Any:
        """Infer with the remembering context, then give the real one back."""
        context, flags = state.typingctx, state.flags.copy()
        # numba keeps its own implementations apart by these, though they do not differ.
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        state.typingctx = _RememberedContext(context, flags)
        try:
            with ConfigStack().enter(flags):
                return super().run_pass(state)
        finally:
            state.typingctx = context


PASSES: Final = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    RewriteSemanticConstants,
    DeadBranchPrune,
    GenericRewrites,
    ReconstructSSA,
    _InferTypes,
    PreLowerStripPhis,
    NopythonRewrites,
    IRLegalization,
    AnnotateTypes,
)


class _InnerCompiler(CompilerBase):  # type: ignore[misc]
    """Those passes of numba's pipeline that change plain loops over arrays."""

    library_passes: ClassVar[tuple[type, ...]] = (_KeepAside,)

    def define_pipelines(self) -> list[Any]:
        """Give the pipeline."""
        pipeline = PassManager("espalier")
        for each in (*PASSES, *self.library_passes, NativeLowering, NoPythonBackend):
            pipeline.add_pass(each, each.__name__)
        pipeline.finalize()
        return [pipeline]


class _KernelCompiler(_InnerCompiler):
    """The same for what Python calls."""

    library_passes = ()


def _widened(kind: Any) -> Any:
    """Give the type of a variable that can hold what an argument of this type says."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind


def compiled(function: Function) -> Function:
    """Compile a function on its first call: no interpreter lock, no fast-math, IEEE division, kept on disk if possible.

    Without a folder to keep it in, it is compiled anew in each process. With ``NUMBA_DISABLE_JIT=1`` it stays Python.
    """
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "pipeline_class": _KernelCompiler}
    dispatcher = numba.njit(**options)(function)
    path = Path(function.__code__.co_filename)
    if hasattr(dispatcher, "py_func"):
        dispatcher.__class__ = _Kernel
        if cache_folder(path) is not None or filled_folders(path):
            # What enable_caching() does, with folders of our own choice.
            dispatcher._cache = KernelCache(dispatcher.py_func)
    return dispatcher  # type: ignore[no-any-return]


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """What Python calls: machine code, or its Python where there is none yet and small work should not wait."""

    def __call__(self, *arguments: Any) -> Any:
        block = current()
        if block is None or (self not in block.kernels and _is_kept(self, arguments)):
            return super().__call__(*arguments)
        block.kernels.add(self)
        with np.errstate(all="ignore"):  # as machine code, which never warns
            return self.py_func(*arguments)


class _Inner(CPUDispatcher):  # type: ignore[misc]
    """What compiled functions call; where those are run as Python, so is this."""

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


def phase_of(kernel: Any, phase: str, arguments: tuple[Any, ...] = ()) -> str:
    """Name a phase that begins with this kernel; where its machine code is not kept yet, compiling is part of it.

    Small work is done without compiling (`espalier.small_work`), and that is said instead.

    arguments: those that it is about to be called with. A kernel may be kept for others than these.
    """
    if _is_kept(kernel, arguments):
        return phase
    return f"compiling kernels, then {phase}" if current() is None else f"{phase} without compiled kernels"


def must_compile(kernel: Any) -> bool:
    """Whether the first call of a kernel compiles it, and leaves its machine code for the next process."""
    return not _is_kept(kernel, ()) and cache_folder(Path(kernel.py_func.__code__.co_filename)) is not None


def _is_kept(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    function = getattr(kernel, "py_func", None)
    if function is None:
        return True  # stays Python
    signature = tuple(numba.typeof(each) for each in arguments)
    if signature in kernel.overloads if arguments else kernel.overloads:
        return True
    path = Path(function.__code__.co_filename)
    pattern = f"{path.stem}.{function.__qualname__}-*.nbi"
    if not any(any(folder.glob(pattern)) for folder in filled_folders(path)):
        return False
    return not arguments or kernel._cache.holds(signature)
