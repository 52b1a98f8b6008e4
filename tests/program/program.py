"""Runs the built programs as a user would, in a folder of its own."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(os.environ["REGATTA_BIN"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SLOWNESS = int(os.environ.get("TEST_SLOWNESS", 1))  # how many times as long programs may take, as with a sanitizer
SAMPLE = SOURCE / "tests" / "data" / "criteo_slots_80.txt"

CONFIG = """
model: dnn
runner:
  train_data_dir: train
  train_reader_path: criteo_reader
  train_batch_size: {batch}
  epochs: 2
  print_interval: 1
  model_save_path: model
hyper_parameters:
  optimizer: {{class: Adam, learning_rate: 0.001}}
  sparse_inputs_slots: 27
  sparse_feature_dim: 5
  dense_input_dim: 13
  fc_sizes: [16]
"""

# A pipe_command in Python: the sample's lines as MultiSlot.
MULTISLOT = """import sys
lines = sys.stdin.readlines()
for line in lines:
    slots = {}
    for token in line.split():
        name, value = token.split(':', 1)
        slots.setdefault(name, []).append(value)
    order = ['click'] + [str(i) for i in range(1, 27)] + ['dense_feature']
    print(' '.join(f'{len(slots.get(s, []))} ' + ' '.join(slots.get(s, [])) for s in order))
"""


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta_program_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def make_job(self, copies=5, files=3, batch=10):
        """Some files of sample data and the YAML over them."""
        for i in range(files):
            lines = SAMPLE.read_text().splitlines(keepends=True) * copies
            self.write(f"train/part-{i}.txt", "".join(lines[i:]))
        return self.write("config.yaml", CONFIG.format(batch=batch))

    def start(self, *args, **kwargs):
        return subprocess.Popen([BIN / "regatta", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, cwd=kwargs.pop("cwd", self.folder), **kwargs)

    def run_regatta(self, *args, code=0, **kwargs):
        done = self.start(*args, **kwargs)
        try:
            out, err = done.communicate(timeout=120 * SLOWNESS)
        except subprocess.TimeoutExpired:
            done.kill()
            self.fail(f"regatta {args} did not end")
        self.assertEqual(done.returncode, code, f"regatta {args}\n{out[-2000:]}\n{err[-2000:]}")
        return out, err

    def dump(self, save):
        out, _ = self.run_regatta("checkpoint", "dump", save)
        self.assertIn("\n", out)
        return out

    def kill_at_line(self, process, text, signal_number=signal.SIGKILL):
        """Reads the output up to a line that holds `text`, then sends the signal; the exit status."""
        for line in process.stdout:
            if text in line:
                process.send_signal(signal_number)
                break
        else:
            self.fail(f"'{text}' was never printed: {process.stderr.read()[-2000:]}")
        process.communicate(timeout=120 * SLOWNESS)
        return process.returncode


main = unittest.main
