"""Compile the kernels: the Python files in folders named ``kernels``, each with a header (``.pxd``) of C types.

Only what has changed is compiled. ``ESPALIER_CHECKED=1`` compiles with every index of an array checked.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

sys.path.insert(0, "tools")

from Cython.Build import cythonize
from kernel_build import compile_flags, use_compiler

N_PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
CHECKED = bool(os.environ.get("ESPALIER_CHECKED"))
DIRECTIVES = {
    "language_level": 3,
    "infer_types": True,
    "boundscheck": CHECKED,
    "initializedcheck": CHECKED,
    "wraparound": False,
    "cdivision": True,
}
SHARED = "espalier._cython"  # what every kernel needs of Cython, compiled once
ABI3 = {"Py_LIMITED_API": "0x030B0000", "CYTHON_LIMITED_API": "1"}  # one build serves every Python from 3.11 on


class BuildKernels(build_ext):
    """Compiles several kernels at once and says which."""

    def finalize_options(self):
        """Use all processors, and keep what an editable installation compiles: pip's own folder is temporary."""
        self.parallel = N_PROCESSORS
        super().finalize_options()
        if self.editable_mode:
            folder = f"build/editable-{os.environ.get('ESPALIER_CPU', 'plain')}"
            self.build_lib, self.build_temp = folder, f"{folder}-objects"

    def build_extension(self, ext):
        """Compile and link one kernel."""
        if self.force or newer_group([*ext.sources, *ext.depends], self.get_ext_fullpath(ext.name), "newer"):
            place = self.extensions.index(ext) + 1
            # One write: another thread may print between a text and its end.
            print(f"Compiling kernel {place} of {len(self.extensions)}: {ext.name}\n", end="", flush=True)
        super().build_extension(ext)


def kernels():
    """Return the C extensions, one for each header."""
    # A header of constants only has no functions to compile.
    headers = [path for path in sorted(Path("espalier").glob("**/*.pxd")) if "cdef enum" not in path.read_text()]
    sources = {".".join(header.with_suffix("").parts): [str(header.with_suffix(".py"))] for header in headers}
    extensions = [
        Extension(
            name,
            source,
            depends=["setup.py", "tools/kernel_build.py"],
            extra_compile_args=compile_flags(),
            define_macros=list(ABI3.items()),
            py_limited_api=True,
        )
        for name, source in [*sources.items(), (SHARED, [])]
    ]
    return cythonize(
        extensions,
        build_dir="build/checked-c" if CHECKED else "build/c",
        shared_utility_qualified_name=SHARED,
        nthreads=N_PROCESSORS,
        compiler_directives=DIRECTIVES,
        quiet=True,
    )


if __name__ == "__main__":  # the processes of cythonize may import this file
    use_compiler()
    setup(
        ext_modules=kernels(),
        cmdclass={"build_ext": BuildKernels},
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
