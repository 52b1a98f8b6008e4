"""The examples in docstrings give what they say, and modules that promise to need no PyTorch import none."""
import doctest
import importlib
import subprocess
import sys
import unittest


class DocsTest(unittest.TestCase):
    def test_examples_in_docstrings(self):
        for name in ("rules", "history", "torch.tensors"):
            with self.subTest(name):
                result = doctest.testmod(importlib.import_module(f"regattarec.{name}"), raise_on_error=False)
                self.assertGreater(result.attempted, 0)
                self.assertEqual(result.failed, 0)

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
