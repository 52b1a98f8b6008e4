"""python/README.md as printed: its programs and commands, and its job of 2 x 2 whose processes are killed."""
import os
import pathlib
import re
import subprocess
import unittest

from job import JobTest
from script import BIN, PYTHON

README = (pathlib.Path(__file__).resolve().parents[1] / "README.md").read_text()


def blocks(language):
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", README)


class ReadmeTest(JobTest):
    def setUp(self):
        super().setUp()
        for block in blocks("python"):
            if name := re.match(r"# (\w+\.py)\n", block):
                (self.folder / name[1]).write_text(block)
        # `python3` and `regatta` as in the environment that the page has a reader make.
        (self.folder / "bin").mkdir()
        python = self.folder / "bin" / "python3"
        python.write_text(f"#!/bin/sh\nexec {' '.join(PYTHON)} \"$@\"\n")
        python.chmod(0o755)
        self.env["PATH"] = os.pathsep.join([str(self.folder / "bin"), str(BIN), self.env["PATH"]])

    def printed(self, *words):
        """The lines of the page's commands in which all words are."""
        lines = [line for block in blocks("bash") for line in block.splitlines() if all(word in line for word in words)]
        self.assertTrue(lines, words)
        return lines

    def type(self, line):
        done = subprocess.run(["sh", "-ec", line], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def make_clicks(self):
        for line in self.printed("regatta data gen"):
            self.type(line)

    def test_the_first_program_alone_and_on_servers(self):
        self.make_clicks()
        losses = []
        for line in self.printed("train.py"):
            if "examples/" in line:
                continue
            found = re.findall(r"epoch 1: loss ([0-9.]+) of ([0-9,]+) samples", self.type(line))
            losses.append(float(found[0][0]))
            self.assertEqual(found[0][1], "50,000" if "launch" in line else "100,000")
            self.assertIn("complete", self.type(self.printed("checkpoint ls")[0]))
        self.assertEqual(len(losses), 2)
        self.assertLess(max(losses), 0.53)  # 0.562 is that of the click rate alone

    def test_the_loader(self):
        self.make_clicks()
        self.assertEqual(self.type("python3 loader.py"), "100000 samples\n")

    def test_the_session_alone_and_killed_in_a_job(self):
        self.make_clicks()
        alone, on_servers = self.printed("session.py")
        self.assertEqual(len(re.findall(r"(?m)^epoch [012]: loss", self.type(alone))), 6)  # as it goes, and at the end
        self.type(f"rm -r session_model; {on_servers}")
        straight = self.dump("session_model/2")
        self.type("rm -r session_model")
        process = self.start_job("killed", "python3", "session.py")
        for epoch, killed in ((0, ("server 1", "worker 1")), (1, ("worker 0",))):
            self.await_words("killed", process, lambda said: f"epoch {epoch}: loss" in said)
            for one in killed:
                self.kill("killed", one)
        self.end_job("killed", process)
        self.assertEqual(self.said("killed").count("started again as pid"), 3, self.said("killed"))
        self.assertEqual(self.dump("session_model/2"), straight)


if __name__ == "__main__":
    unittest.main()
