"""scripts/check_layers passes on the tree and fails on an include that the table forbids."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CheckLayersTest(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return subprocess.run([ROOT / "scripts" / "check_layers", folder], capture_output=True, text=True)

    def test_the_tree_is_clean(self):
        done = subprocess.run([ROOT / "scripts" / "check_layers"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_faults_are_found(self):
        for files, word in (
            ({"src/base/x.h": '#include "table/sparse_table.h"\n'}, "src/base may not include table/sparse_table.h"),
            ({"src/table/x.cc": "#include <torch/torch.h>\n"}, "torch-free"),
            ({"src/model/x.cc": '#include "data/dataset.h"\n'}, "src/model may not include data/dataset.h"),
            ({"src/model/names.h": '#include "model/tensor.h"\n'}, "torch-free folders include src/model/names.h"),
            ({"src/settings/x.cc": '#include "model/model.h"\n'}, "src/settings may not include model/model.h"),
            ({"src/comm/x.cc": '#include "absl/synchronization/mutex.h"\n'}, "base/mutex.h"),
            ({"src/misc/x.cc": ""}, "not in the layer table"),
            ({"src/comm/x.cc": '#include "fleet/testing/y.h"\n'}, "which is for tests"),
            ({"src/table/x_test.cc": "#include <torch/torch.h>\n"}, "torch-free"),
            ({"src/table/a.h": "", "src/table/b.h": '#include "table/a.h"\n', "src/table/a.cc": '#include "table/b.h"\n'},
             "table/a includes table/b, table/b includes table/a"),
        ):
            done = self.check(files)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(word, done.stdout)

    def test_what_is_allowed_passes(self):
        for files in (
            {"src/model/x.cc": '#include "data/batch.h"\n#include <torch/torch.h>\n'},
            {"src/train/x_test.cc": '#include "client/y.h"\n', "src/client/testing/y.h": '#include "server/z.h"\n'},
            {"src/table/a.h": "", "src/table/b.h": '#include "table/a.h"\n', "src/table/a_test.cc": '#include "table/b.h"\n'},
        ):
            done = self.check(files)
            self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
