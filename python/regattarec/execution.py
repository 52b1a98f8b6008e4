"""Loads _exec, which runs programs, and keeps two libtorches out of one process: both would die.

_exec was built with one libtorch. A PyTorch that brings that very libtorch (Debian's python3-torch) may be imported before
or after it. Another PyTorch is refused, whichever comes first.
"""
import importlib
import importlib.abc
import importlib.util
import os
import re
import subprocess
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any

_loaded: Any = None


def _libtorches() -> set[str]:
    """The files of libtorch_cpu in this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        found = {line.split(None, 5)[-1].strip() for line in maps if "libtorch_cpu" in line}
    return {os.path.realpath(path) for path in found if path.startswith("/")}


def _torch_of(spec: ModuleSpec) -> str:
    """The libtorch_cpu that importing this PyTorch would load; empty if it cannot be told."""
    folder = os.path.dirname(spec.origin or "")
    path = os.path.join(folder, "lib", "libtorch_cpu.so")
    return os.path.realpath(path) if os.path.exists(path) else ""


def _same(a: str, b: str) -> bool:
    """Whether two files are one library: /usr/lib/…/libtorch_cpu.so.1.13 comes in several folders as links."""
    return os.path.realpath(a) == os.path.realpath(b) or (os.path.exists(a) and os.path.exists(b) and os.path.samefile(a, b))


class _TorchGuard(importlib.abc.MetaPathFinder):
    """Refuses a PyTorch that brings another libtorch than the one in this process."""

    def __init__(self, own: str) -> None:
        self._own = own

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "torch":
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is None:
                continue
            other = _torch_of(spec)
            if other and not _same(other, self._own):
                raise ImportError(f"torch brings {other}, and this process runs programs with {self._own}: two of them cannot "
                                  "live in one process. Use this PyTorch in another process than paddle.fluid")
            return spec
        return None


def exec_module() -> Any:
    """The module _exec."""
    global _loaded
    if _loaded is not None:
        return _loaded
    before = _libtorches()
    if "torch" in sys.modules and before:
        own = _own_libtorch()
        if own and not any(_same(own, path) for path in before):
            raise ImportError(f"programs run with {own}, and this process has imported torch, which brought {', '.join(sorted(before))}: "
                              "two of them cannot live in one process. Run programs of paddle.fluid in a process without this PyTorch")
    try:
        _loaded = importlib.import_module("regattarec._exec")
    except ModuleNotFoundError as error:
        raise ImportError("this build of Regatta has no regattarec._exec, which runs programs: build it from the sources, with "
                          "libtorch-dev and -DWITH_PYTHON=ON (docs/howto/fluid.md)") from error
    found = _libtorches()
    if found:
        sys.meta_path.insert(0, _TorchGuard(sorted(found)[0]))
    return _loaded


def _own_libtorch() -> str:
    """The libtorch_cpu that _exec would load, as the dynamic linker finds it; empty if it cannot be told."""
    spec = importlib.util.find_spec("regattarec._exec")
    if spec is None or not spec.origin:
        return ""
    done = subprocess.run(["ldd", spec.origin], capture_output=True, text=True)
    found = re.search(r"libtorch_cpu\S* => (\S+)", done.stdout)
    return os.path.realpath(found[1]) if found else ""
