"""What a person sees of a session: a live line on a terminal and in a notebook, and a plot."""
import os
import pty
import re
import subprocess
import textwrap
import unittest

from script import PYTHON, ScriptTest

TRAIN = """
import time, torch, regattarec.torch as rt
e = rt.Embedding(None, 1, rule=rt.SGD(lr=0.1))
o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
with rt.session() as s:
    for epoch in s.epochs(2):
        for k in s.batches(range(8)):
            loss = e(torch.tensor([k % 4])).sum() ** 2
            s.observe(loss, predictions=[0.25 + 0.5 * (k % 2)], labels=[k % 2])
            o.zero_grad(); loss.backward(); o.step()
            time.sleep(0.15)
"""


class ProgressTest(ScriptTest):
    def on_a_terminal(self, script):
        path = self.folder / "script.py"
        path.write_text(script)
        ours, theirs = pty.openpty()
        process = subprocess.Popen([*PYTHON, path], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=theirs, stderr=theirs)
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:
            pass  # the end of a terminal
        os.close(ours)
        self.assertEqual(process.wait(timeout=60), 0, seen.decode())
        return seen.decode()

    def test_a_live_line_on_a_terminal(self):
        seen = self.on_a_terminal(TRAIN)
        self.assertRegex(seen, r"\repoch 0: batch \d, loss 0\.\d+, auc 1\.0000, [\d,]+ samples/s")
        # The line of the epoch takes its place.
        self.assertRegex(seen, r"\r +\repoch 0: loss 0\.\d+, auc 1\.00000, 8 samples in 1\.\d s, \d samples/s")

    def test_no_live_line_in_a_file(self):
        out = self.run_script(TRAIN)
        self.assertNotIn("\r", out + self.stderr)
        self.assertEqual(len(re.findall("(?m)^epoch [01]: loss", out)), 2)

    def test_a_cell_that_is_rewritten_in_a_notebook(self):
        """A stand-in for IPython: what the session asks of it."""
        (self.folder / "IPython").mkdir()
        (self.folder / "IPython" / "__init__.py").write_text("class ZMQInteractiveShell: pass\n"
                                                             "get_ipython = lambda: ZMQInteractiveShell()\n")
        (self.folder / "IPython" / "display.py").write_text(textwrap.dedent("""
            class Handle:
                def update(self, what, raw): print("cell", raw, what["text/plain"])
            def display(what, raw, display_id): return Handle()
            """))
        out = self.run_script("import IPython\n" + TRAIN)
        self.assertRegex(out, r"cell True epoch 0: batch \d, loss")
        self.assertNotIn("\r", self.stderr)

    def test_a_plot(self):
        """A stand-in for matplotlib: which curves it is asked to draw."""
        (self.folder / "matplotlib").mkdir()
        (self.folder / "matplotlib" / "__init__.py").write_text("")
        (self.folder / "matplotlib" / "pyplot.py").write_text(textwrap.dedent("""
            class Axes:
                def plot(self, x, y, marker): self.curve = (x, y)
                def set_xlabel(self, text): pass
                def set_title(self, text): self.title = text
            def subplots(rows, columns, **_): return None, [[Axes() for _ in range(columns)]]
            """))
        out = self.run_script(TRAIN.replace("time.sleep(0.15)", "pass") + textwrap.dedent("""
            for ax in s.history.plot():
                assert ax.curve[0] == [0, 1], ax.curve
                print(ax.title, ax.curve[1] == [h[ax.title] for h in s.history])
            import regattarec
            try:
                s.history.plot("f1")
            except regattarec.NotFoundError as error:
                print(error)
            """))
        self.assertIn("loss True\nauc True\n", out)
        self.assertIn("no epoch has 'f1'; there are samples, loss, auc", out)


if __name__ == "__main__":
    unittest.main()
