"""The build backend: setuptools, with the machine's C compiler or zig's.

Except on Windows, if no C compiler is found, the build requires the package ``ziglang`` and uses its clang.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - a backend is its functions

# Results must not depend on the compiler: no contraction of a·b + c, no fast-math.
FLAGS: Final = ("-O3", "-g0", "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
ROOT: Final = Path(__file__).resolve().parents[1]


def _installed_compiler() -> list[str] | None:
    for command in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"):
        words = (command or "").split()
        if words and shutil.which(words[0]):
            return words
    return None


# Set at import, before setuptools runs setup.py, which may set CC to zig's compiler.
ZIG: Final = [] if sys.platform == "win32" or _installed_compiler() else ["ziglang>=0.13"]


def c_compiler() -> list[str]:
    """Return the command of the C compiler as words: the compiler of this machine, or zig's."""
    return _installed_compiler() or [sys.executable, "-m", "ziglang", "cc"]


def compile_flags() -> list[str]:
    """Return the options of the C compiler.

    The code runs on every processor of the architecture, unless ``ESPALIER_CPU`` names the processor to compile for;
    on Windows this variable is ignored.
    """
    if sys.platform == "win32":
        return ["/O2", "/fp:precise"]
    uses_zig = "ziglang" in c_compiler()
    # Zig's own default is the processor of this machine.
    processor = os.environ.get("ESPALIER_CPU") or ("baseline" if uses_zig else None)
    if processor is None:
        return list(FLAGS)
    return [*FLAGS, f"-mcpu={processor.replace('-', '_')}" if uses_zig else f"-march={processor}"]


def use_compiler() -> None:
    """Let setuptools compile and link with `c_compiler`, except on Windows or if that compiler has built Python."""
    command = " ".join(c_compiler())
    if command == sysconfig.get_config_var("CC") or sys.platform == "win32":
        return
    shared = "-bundle -undefined dynamic_lookup" if sys.platform == "darwin" else "-shared"
    os.environ["CC"], os.environ["LDSHARED"] = command, f"{command} {shared}"
    if "ziglang" in command:
        os.environ.setdefault("CFLAGS", "")  # zig may not know the options of the compiler that built Python
        # Zig's cache would otherwise be written to the user's home.
        for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
            os.environ.setdefault(name, str(ROOT / "build" / "zig"))
        os.environ["LDSHARED"] += " -s"


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what building a wheel requires."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *ZIG]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """Return what an editable installation requires."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *ZIG]
