"""Becomes `regatta`: the one of this repository's build, else the one in PATH."""
import os
import pathlib
import shutil
import sys


def become(verb):
    built = pathlib.Path(__file__).resolve().parents[1] / "build" / "bin" / "regatta"
    regatta = str(built) if os.access(built, os.X_OK) else shutil.which("regatta")
    if regatta is None:
        sys.exit(f"{sys.argv[0]}: no regatta in {built.parent} or in PATH; build it with scripts/demo")
    sys.stdout.flush()
    os.execv(regatta, [regatta, verb, *sys.argv[1:]])
