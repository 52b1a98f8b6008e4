"""The examples in docstrings give what they say, and modules that promise to need no PyTorch import none."""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

from script import PYTHON


# Runs the examples of a module's docstrings, and prints how many had some.
EXAMPLES = """
import doctest, importlib, os, sys
module = importlib.import_module(sys.argv[1])
tests = [test for test in doctest.DocTestFinder().find(module) if test.examples]
failed = 0
for test in tests:
    child = os.fork()
    if child == 0:
        bad = doctest.DocTestRunner().run(test).failed
        sys.stdout.flush()
        os._exit(min(bad, 1))
    failed += os.waitpid(child, 0)[1] != 0
print(len(tests))
sys.exit(min(failed, 1))
"""


def run_examples(test, package):
    """Each one in a process of its own, for a process has one job. How many docstrings have some."""
    folder = pathlib.Path(importlib.util.find_spec(package).origin).parent
    tried = 0
    for file in sorted(folder.rglob("*.py")):
        if ">>> " not in file.read_text():
            continue
        name = ".".join((package, *file.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
        with test.subTest(name), tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([*PYTHON, "-c", EXAMPLES, name], cwd=empty, capture_output=True, text=True, timeout=120)
            test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            tried += int(done.stdout.split()[-1])
    return tried


class DocsTest(unittest.TestCase):
    def test_examples_in_docstrings(self):
        self.assertGreater(run_examples(self, "regattarec"), 10)

    def test_the_package_imports_no_torch(self):
        code = ("import sys, regattarec, regattarec._core, regattarec.rules, regattarec.job, regattarec.data, regattarec.fleet, "
                "regattarec.session; sys.exit('torch' in sys.modules)")
        self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, 0)

    def test_every_error_is_one_of_the_package(self):
        import regattarec
        from regattarec import errors
        for name in regattarec.__all__:
            if name.endswith("Error"):
                self.assertTrue(issubclass(getattr(errors, name), regattarec.Error), name)
                self.assertEqual(str(getattr(errors, name)("words")), "words")


if __name__ == "__main__":
    unittest.main()
