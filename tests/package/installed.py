"""Tries an installed regattarec, with the Python that runs this file. It needs the standard library and NumPy.

    python3 installed.py                      the package, its commands, a job of four processes, without PyTorch
    python3 installed.py --torch              and examples/torch_quickstart, alone and on servers
    python3 installed.py --beside             and PyTorch with pyarrow and grpcio in one process, imported in either order
    python3 installed.py --types              and what mypy says of a typed program, of wrong calls and of the package
    python3 installed.py --wheel              and that nothing of the system's libraries is used
"""
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
QUICKSTART = ROOT / "examples" / "torch_quickstart" / "train.py"
SCRIPTS = pathlib.Path(sysconfig.get_path("scripts"))
TWO = ("--server_num=2", "--worker_num=2")
# What a manylinux wheel may use of a system.
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libz|ld-linux-x86-64|libpython[0-9.]+)[.-]")


class InstalledTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="regatta-installed-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith(("PADDLE_", "TRAINING_", "REGATTA_", "PYTHONPATH"))}

    def run_command(self, *command, code=0, seconds=120):
        done = subprocess.run(list(map(str, command)), cwd=self.folder, env=self.env, capture_output=True, text=True,
                              timeout=seconds, stdin=subprocess.DEVNULL)
        logs = "".join(f"\n== {log.name}\n{log.read_text()[-1500:]}" for log in sorted(self.folder.glob("log/*")))
        self.assertEqual(done.returncode, code, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}{logs}")
        return done.stdout if code == 0 else done.stderr

    def regatta(self, *words, **options):
        return self.run_command(SCRIPTS / "regatta", *words, **options)

    def python(self, *words, launch=(), **options):
        return self.run_command(*([SCRIPTS / "regatta", "launch", *launch, "--"] if launch else ()), sys.executable, *words, **options)

    def make_clicks(self):
        self.regatta("data", "gen", "--out", "clicks", "--samples", "20000", "--files", "4", "--slots", "4", "--dense", "0",
                     "--ids", "50")

    def test_the_files_and_the_version(self):
        import regattarec
        version = importlib.metadata.version("regattarec")
        self.assertEqual(regattarec.__version__, version)
        text = self.regatta("version")
        self.assertIn(f"Regatta {version},", text)
        self.assertIn("with_python: ON", text)
        self.assertIn("libtorch: not built in", text)
        package = pathlib.Path(regattarec.__file__).parent
        self.assertIn("class Dataset", (package / "_core.pyi").read_text())
        self.assertTrue((package / "py.typed").exists())
        self.assertIn("Apache License", importlib.metadata.distribution("regattarec").read_text("licenses/LICENSE"))

    def test_an_older_python_is_refused(self):
        self.assertEqual(importlib.metadata.metadata("regattarec")["Requires-Python"], ">=3.10")
        text = self.python("-c", "import sys; sys.version_info = (3, 9, 18, 'final', 0); import regattarec", code=1)
        self.assertIn("ImportError: regattarec needs Python 3.10 or newer, and this is 3.9\n", text)

    def test_the_commands_give_words_and_exit_codes_on(self):
        self.assertIn("unknown command 'tran'; did you mean train?", self.regatta("tran", code=2))
        self.assertIn("usage", self.run_command(SCRIPTS / "fleetrun", "--help").lower())
        self.assertIn("--port", self.regatta("pserver", "--help"))
        self.regatta("checkpoint", "ls", "nowhere", code=1)

    def test_the_commands_end_as_the_program_itself_with_a_closed_pipe(self):
        import regattarec
        program = pathlib.Path(regattarec.__file__).parent / "bin" / "regatta"
        script = "(sleep 0.3; exec $0 config --keys) | (exec <&-; sleep 0.6); echo ${PIPESTATUS[0]}"
        codes = [self.run_command("bash", "-c", script, command).split() for command in (program, SCRIPTS / "regatta")]
        self.assertEqual(codes[0], codes[1])  # Python ignores SIGPIPE, and the program does not
        self.assertEqual(codes[0], ["141"])

    def test_training_by_a_yaml_says_what_it_needs(self):
        (self.folder / "config.yaml").write_text("model: dnn\nrunner: {train_data_dir: ., train_reader_path: criteo_reader}\n")
        text = self.regatta("train", "-m", "config.yaml", code=2)
        self.assertIn("regattarec/bin/regatta-train, which this command needs, is not there", text)
        self.assertIn("libtorch-dev", text)

    def test_regatta_train_beside_it_is_used(self):
        import regattarec
        program = pathlib.Path(regattarec.__file__).parent / "bin" / "regatta-train"
        program.write_text("#!/bin/sh\necho trains \"$@\"; exit 7\n")
        self.addCleanup(program.unlink)
        program.chmod(0o755)
        done = subprocess.run([SCRIPTS / "regatta", "train", "--help"], capture_output=True, text=True, env=self.env)
        self.assertEqual((done.returncode, done.stdout), (7, "trains train --help\n"))

    def test_numpy_alone_trains_in_one_process_and_in_a_job(self):
        self.make_clicks()
        self.assertIn("1 workers", self.python(HERE / "steps.py", "clicks/train"))
        self.python(HERE / "steps.py", "clicks/train", launch=TWO)
        for i in range(2):
            self.assertIn("2 workers", (self.folder / f"log/workerlog.{i}").read_text())

    def test_the_package_needs_no_torch(self):
        self.python("-c", "import regattarec.data, regattarec.fleet, regattarec.session, sys; sys.exit('torch' in sys.modules)")


class TorchTest(InstalledTest):
    """With PyTorch."""

    def test_the_first_example(self):
        for launch in ((), TWO):
            with self.subTest(launch):
                out = self.python(QUICKSTART, "--epochs", "2", "--batches", "400", launch=launch)
                self.assertGreater(float(re.search(r"epoch 1: .*auc ([0-9.]+)", out)[1]), 0.62, out)
                self.assertIn("complete", self.regatta("checkpoint", "ls", "quickstart_model"))


class BesideTest(InstalledTest):
    """With PyTorch, pyarrow and grpcio."""

    def test_other_libraries_in_the_same_process(self):
        orders = (("regattarec.torch", "pyarrow", "grpc"), ("pyarrow", "grpc", "regattarec.torch"),
                  ("regattarec._core", "grpc", "torch", "pyarrow"), ("grpc", "torch", "pyarrow", "regattarec._core"),
                  ("torch", "regattarec._core", "pyarrow", "grpc"), ("pyarrow", "regattarec._core", "grpc", "torch"))
        for order in orders:
            with self.subTest(order):
                print(self.python(HERE / "beside.py", *order), end="", file=sys.stderr)
        for order in orders[:2]:  # with a server, our gRPC is used too
            with self.subTest(order, servers=1):
                self.python(HERE / "beside.py", *order, launch=("--server_num=1", "--worker_num=1"))


class TypesTest(InstalledTest):
    """With PyTorch and mypy."""

    def mypy(self, *words):
        return subprocess.run([sys.executable, "-m", "mypy", "--cache-dir=cache", *map(str, words)], cwd=self.folder, env=self.env,
                              capture_output=True, text=True, timeout=300)

    def test_a_typed_program(self):
        done = self.mypy(HERE / "typed.py")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_wrong_calls_are_found(self):
        source = HERE / "wrong_calls.py"
        want = {number: set(kinds[1].split()) for number, line in enumerate(source.read_text().splitlines(), 1)
                if (kinds := re.search(r"  # ([a-z -]+)$", line))}
        self.assertGreater(len(want), 50)
        found = {}
        for number, kind in re.findall(r"^.*wrong_calls\.py:(\d+): error: .*\[([a-z-]+)\]$", self.mypy(source).stdout, re.M):
            found.setdefault(int(number), set()).add(kind)
        self.assertEqual(found, want)

    def test_the_package_itself(self):
        import regattarec
        shutil.copytree(pathlib.Path(regattarec.__file__).parent, self.folder / "regattarec",  # mypy checks no site-packages
                        ignore=shutil.ignore_patterns("*.so", "bin", "__pycache__"))
        done = self.mypy("--config-file", ROOT / "pyproject.toml", "regattarec")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class WheelTest(InstalledTest):
    """A wheel of scripts/wheel."""

    def loaded(self, *command):
        """The libraries that a process of this command has loaded."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            env = {**self.env, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": f"{folder}/loaded"}
            subprocess.run(list(map(str, command)), env=env, cwd=self.folder, stdout=subprocess.DEVNULL, check=True)
            text = "".join(path.read_text() for path in pathlib.Path(folder).iterdir())
        return {pathlib.Path(os.path.normpath(path)) for path in re.findall(r"calling init: (\S+)", text)}

    def test_no_library_of_the_system_is_used(self):
        import regattarec
        package = pathlib.Path(regattarec.__file__).parent
        own = package.with_name("regattarec.libs")
        for command in ((sys.executable, "-c", "import regattarec._core"), (package / "bin" / "regatta", "version"),
                        (package / "bin" / "regatta-pserver", "--help")):
            with self.subTest(command):
                before = self.loaded(sys.executable, "-c", "import numpy") if command[0] == sys.executable else set()
                found = self.loaded(*command) - before
                self.assertTrue(any(path.parent == own for path in found))
                foreign = [str(path) for path in found if package.parent not in path.parents and not SYSTEM.match(path.name)]
                self.assertEqual(foreign, [])

    def test_every_bundled_library_has_its_licence(self):
        import regattarec
        folder = importlib.metadata.distribution("regattarec")
        bundled = folder.read_text("licenses/bundled.txt")
        libraries = list(pathlib.Path(regattarec.__file__).parent.with_name("regattarec.libs").iterdir())
        self.assertGreater(len(libraries), 20)
        for library in libraries:
            line = next((line for line in bundled.splitlines() if library.name in line), None)
            self.assertIsNotNone(line, library.name)
            self.assertIn("icen", folder.read_text(f"licenses/debian/{line.split()[0]}"))
        for name in ("Apache-2.0", "GPL-2"):
            if f"common-licenses/{name}" in bundled:
                self.assertTrue(folder.read_text(f"licenses/common-licenses/{name}"))


CLASSES = {"--torch": TorchTest, "--beside": BesideTest, "--types": TypesTest, "--wheel": WheelTest}


def main(words):
    unknown = set(words) - set(CLASSES)
    if unknown:
        print(f"installed.py: unknown argument {', '.join(sorted(unknown))}; there are {', '.join(CLASSES)}", file=sys.stderr)
        return 2
    suite, loader = unittest.TestSuite(), unittest.TestLoader()
    for case in (InstalledTest, *(CLASSES[word] for word in words)):
        names = [name for name in vars(case) if name.startswith("test_")]
        suite.addTests(loader.loadTestsFromNames([f"{case.__name__}.{name}" for name in names], sys.modules[__name__]))
    return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
