"""The examples run as their pages say, alone and on servers, and learn."""
import pathlib
import re
import subprocess
import unittest

from script import BIN, PYTHON, ScriptTest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


class ExamplesTest(ScriptTest):
    def run_example(self, name, *arguments, launch=()):
        command = [*PYTHON, EXAMPLES / name / "train.py", *arguments]
        if launch:
            command = [BIN / "regatta", "launch", *launch, "--", *command]
        done = subprocess.run(list(map(str, command)), cwd=self.folder, env=self.env, capture_output=True, text=True,
                              timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-3000:])
        return done.stdout

    def test_torch_quickstart_alone_and_on_servers(self):
        for launch in ((), ("--server_num=2", "--worker_num=2")):
            with self.subTest(launch):
                out = self.run_example("torch_quickstart", "--epochs", "2", "--batches", "400", launch=launch)
                # Of batches that were not seen before; guessing is 0.5.
                self.assertGreater(float(re.search(r"epoch 1: .*auc ([0-9.]+)", out)[1]), 0.62, out)
                ls = subprocess.run([BIN / "regatta", "checkpoint", "ls", self.folder / "quickstart_model"], capture_output=True,
                                    text=True)
                self.assertIn("complete", ls.stdout)

    def test_torch_hybrid(self):
        out = self.run_example("torch_hybrid", "--epochs", "2", "--batches", "400", launch=("--server_num=2", "--worker_num=2"))
        self.assertGreater(float(re.search(r"epoch 1: .*auc ([0-9.]+)", out)[1]), 0.62, out)

    def test_movie_ratings_alone_and_on_servers(self):
        for launch in ((), ("--server_num=2", "--worker_num=2")):
            with self.subTest(launch):
                out = self.run_example("movie_ratings", "--epochs", "3", launch=launch)
                error, guess = re.search(r"held-out rmse ([0-9.]+); the mean of all ratings gives ([0-9.]+)", out).groups()
                self.assertLess(float(error), 0.85 * float(guess), out)


if __name__ == "__main__":
    unittest.main()
