"""Tries a wheel for Python 3.11 in a bare Debian 12, which debootstrap makes: with python3 and python3-venv alone, then with
python3-torch. There python/README.md runs as printed, and jobs lose servers and workers to kills.

    sudo python3 tests/package/in_debian.py WHEEL [--keep]

NumPy comes from PyPI, all else from the mirror that apt uses here. Six minutes and 2 GB below /tmp; --keep leaves the system.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDED = ["tests/package/installed.py", "tests/package/steps.py", "examples/torch_quickstart/train.py", "python/README.md",
          *(f"python/tests/{name}.py" for name in ("script", "job", "readme_test", "session_test"))]
START = time.monotonic()


def say(text):
    seconds = int(time.monotonic() - START)
    print(f"[{seconds // 60}:{seconds % 60:02}] {text}", file=sys.stderr, flush=True)


def mirror():
    """Where this machine's apt finds Debian 12."""
    lines = subprocess.run(["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Identifier: Packages"],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    found = sorted({line.split()[1] for line in lines if line.split()[0] in ("bookworm", "oldstable", "stable")})
    if not found:
        sys.exit("in_debian: apt's sources have no bookworm here")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        parser.error("this needs root, and debootstrap of the Debian package of that name")
    root = pathlib.Path(tempfile.mkdtemp(prefix="regatta-debian-"))
    log = root.with_suffix(".log")

    def quiet(*command):
        with open(log, "ab") as file:
            if subprocess.run(list(map(str, command)), stdout=file, stderr=subprocess.STDOUT).returncode != 0:
                print("\n".join(log.read_text(errors="replace").splitlines()[-20:]), file=sys.stderr)
                sys.exit(f"in_debian: {command[0]} failed; its output is in {log}")

    def inside(command, run=quiet):
        """In the system, with /proc and /dev that vanish with the command."""
        mount = f"mount -t proc proc {root}/proc && mount --bind /dev {root}/dev && exec chroot {root} sh -c \"$0\""
        return run("unshare", "--mount", "sh", "-c", mount, f"cd /root && export HOME=/root LC_ALL=C.UTF-8 && {command}")

    def show(*command):
        return subprocess.run(command).returncode

    try:
        say(f"Debian 12 in {root}")
        quiet("debootstrap", "--variant=minbase", "bookworm", root, mirror())
        shutil.copytree("/etc/apt/apt.conf.d", root / "etc/apt/apt.conf.d", dirs_exist_ok=True)
        say("python3 and python3-venv")
        inside("apt-get update && apt-get install -y --no-install-recommends python3 python3-venv")
        files = root / "root"
        for name in NEEDED:
            (files / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, files / name)
        (files / "wheels").mkdir()
        shutil.copy(options.wheel, files / "wheels")
        quiet(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version=3.11",
              "--dest", files / "wheels", "numpy")
        install = "-m pip install --no-index --find-links=wheels regattarec"
        say("the wheel, without PyTorch")
        inside(f"python3 -m venv bare && bare/bin/python {install}")
        if inside("bare/bin/python tests/package/installed.py --wheel", show) != 0:
            return 1
        say("python3-torch (some minutes)")
        inside("apt-get install -y --no-install-recommends python3-torch")
        say("the wheel beside Debian's PyTorch")
        inside(f"python3 -m venv --system-site-packages torch && torch/bin/python {install}")
        if inside("torch/bin/python tests/package/installed.py --wheel --torch", show) != 0:
            return 1
        say("python/README.md as printed, and killed jobs")
        for test in ("readme_test.py", "session_test.py -k killed"):
            if inside(f"REGATTA_BIN=/root/torch/bin torch/bin/python -B python/tests/{test}", show) != 0:
                return 1
        say("done")
        return 0
    finally:
        if not options.keep:
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
