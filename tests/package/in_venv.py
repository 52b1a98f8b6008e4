"""Installs a wheel in a fresh virtual environment of this machine and tries it there (installed.py).

    python3 tests/package/in_venv.py WHEEL [--python PATH] [--more]

With the PyTorch of that Python, if it has one: Debian's python3-torch. --more fetches pyarrow and grpcio of PyPI, and trains in
one process with them, and mypy, which checks typed programs and the package.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

INSTALLED = pathlib.Path(__file__).resolve().parent / "installed.py"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--more", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="regatta-venv-") as folder:
        python = pathlib.Path(folder) / "bin" / "python"
        subprocess.run([options.python, "-m", "venv", "--system-site-packages", folder], check=True)
        # Newer ones than pyarrow 21 want NumPy 2, and Debian's PyTorch was built for NumPy 1.
        more = ["pyarrow==21.*", "grpcio", "grpcio-health-checking", "mypy"] if options.more else []
        subprocess.run([python, "-m", "pip", "install", "--quiet", options.wheel, *more], check=True)
        has_torch = subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0
        if options.more and not has_torch:
            parser.error(f"--more needs PyTorch, and {options.python} has none")
        words = ["--wheel", *(["--torch"] if has_torch else []), *(["--beside", "--types"] if options.more else [])]
        return subprocess.run([python, INSTALLED, *words]).returncode


if __name__ == "__main__":
    sys.exit(main())
