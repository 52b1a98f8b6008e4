"""The commands `regatta` and `fleetrun` of an installed package: this process becomes regattarec/bin/regatta."""
import os
import signal
import sys


def _become(name: str) -> str:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "regatta")
    # Python ignores these two, and a program would begin with that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execv(program, [name, *sys.argv[1:]])
    except OSError as error:
        return f"{name}: cannot run {program}: {error.strerror}. Install the package again, or use build/bin/{name}"


def regatta() -> str:
    return _become("regatta")


def fleetrun() -> str:
    return _become("fleetrun")
