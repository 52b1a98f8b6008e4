"""regattarec.data: batches of real lines, in order, shared out, left and resumed."""
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import regattarec
from regattarec.data import Dataset, generate

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes ignore it
CLICKS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "criteo_slots_80.txt"


def parsed():
    """The file's lines by hand: [(label, {slot: [ids]}, dense)]."""
    samples = []
    for line in CLICKS.read_text().splitlines():
        words = [word.split(":") for word in line.split()]
        ids = {}
        for slot, value in words:
            if slot not in ("click", "dense_feature"):
                ids.setdefault(slot, []).append(int(value))
        dense = [float(value) for slot, value in words if slot == "dense_feature"]
        samples.append((float(next(value for slot, value in words if slot == "click")), ids, dense))
    return samples


def open_clicks(**how):
    return Dataset(CLICKS, **dict(dict(slots=26, dense_dim=13, batch_size=32, tensors=False), **how))


class DataTest(unittest.TestCase):
    def test_batches_hold_the_lines(self):
        want, at = parsed(), 0
        for batch in open_clicks():
            for s, label in enumerate(batch.labels):
                self.assertEqual(label, want[at][0])
                np.testing.assert_allclose(batch.dense[s], want[at][2], rtol=1e-6)
                for slot in range(26):
                    bag = batch.keys[batch.offsets[26 * s + slot]:batch.offsets[26 * s + slot + 1]]
                    self.assertEqual([int(key) % 2**64 for key in bag], want[at][1].get(str(slot + 1), []))
                at += 1
        self.assertEqual(at, len(want))

    def test_a_pass_is_left_and_begun_again(self):
        data = open_clicks()
        first = [batch.keys.copy() for batch in data]
        self.assertEqual(len(first), 3)
        for _ in data:
            break
        again = [batch.keys.copy() for batch in data]
        self.assertTrue(all(np.array_equal(a, b) for a, b in zip(first, again, strict=True)))
        rest = [batch.keys.copy() for batch in open_clicks(skip=2)]
        self.assertTrue(all(np.array_equal(a, b) for a, b in zip(first[2:], rest, strict=True)))

    def test_arrays_outlive_their_batch_and_dataset(self):
        kept = [batch.keys for batch in open_clicks()]
        copies = [keys.copy() for keys in kept]
        others = [batch.keys for batch in open_clicks(batch_size=7)]
        self.assertTrue(all(np.array_equal(a, b) for a, b in zip(kept, copies)))
        self.assertEqual(sum(map(len, others)), sum(map(len, kept)))

    def test_a_shuffled_pass_has_the_same_samples_in_another_order(self):
        lines = [tuple(batch.dense[s]) for batch in open_clicks() for s in range(len(batch.labels))]
        data = open_clicks(in_memory=True, shuffle=True)
        one, two = ([tuple(batch.dense[s]) for batch in data for s in range(len(batch.labels))] for _ in range(2))
        self.assertEqual(sorted(one), sorted(lines))
        self.assertNotEqual(one, lines)
        self.assertNotEqual(one, two)

    def test_workers_share_files_out(self):
        with tempfile.TemporaryDirectory() as folder:
            for i in range(4):
                (pathlib.Path(folder) / f"part-{i}").write_text(CLICKS.read_text())
            shares = [Dataset(folder, slots=26, dense_dim=13, index=i, count=3).files for i in range(3)]
        self.assertEqual([len(share) for share in shares], [2, 1, 1])
        self.assertEqual(len({file for share in shares for file in share}), 4)

    def test_a_worker_without_a_file_is_told_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            for i in range(4):
                (pathlib.Path(folder) / f"part-{i}").write_text(CLICKS.read_text())
            with self.assertRaisesRegex(ValueError, "worker 4 of 5 .*none of the 4 files: .*part-0, .*at most as many workers as files"):
                Dataset(folder, slots=26, dense_dim=13, index=4, count=5)

    def test_the_limit_of_bad_lines_may_be_set(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lines"
            path.write_text(CLICKS.read_text() + "no line\n" * 3)
            read = lambda **how: list(Dataset(path, slots=26, dense_dim=13, tensors=False, **how))
            self.assertEqual(sum(len(batch.labels) for batch in read()), 80)
            self.assertEqual(sum(len(batch.labels) for batch in read(max_bad_lines=3)), 80)
            with self.assertRaisesRegex(regattarec.Error, "3 of 83 lines are bad, more than the 2 that max_bad_lines allows"):
                read(max_bad_lines=2)
            with self.assertRaisesRegex(ValueError, "max_bad_lines: -1"):
                read(max_bad_lines=-1)
            self.assertEqual(Dataset(path, slots=26, max_bad_lines=3).identity(), Dataset(path, slots=26).identity())

    def test_bad_input_is_an_exception(self):
        with self.assertRaisesRegex(regattarec.NotFoundError, "nowhere"):
            Dataset("nowhere/*.txt", slots=26)
        with self.assertRaisesRegex(ValueError, "in_memory=True"):
            open_clicks(shuffle=True)
        with self.assertRaisesRegex(ValueError, "index 3 of count 3"):
            open_clicks(index=3, count=3)
        with self.assertRaisesRegex(regattarec.Error, "other"):
            list(Dataset(CLICKS, slots=["other"], dense_dim=13))
        with self.assertRaisesRegex(ValueError, "format 'slot_texts': there are slot_text, criteo_reader"):
            open_clicks(format="slot_texts")
        for slots in (0, -1, True):
            with self.assertRaisesRegex(ValueError, f"slots: {slots}"):
                open_clicks(slots=slots)
        with self.assertRaisesRegex(ValueError, "dense_dim: -1"):
            open_clicks(dense_dim=-1)
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(ValueError, "--threads must be 1 to 1024"):
            generate(folder, samples=20, slots=2, dense=0, ids=10, threads=100_000)
        data = open_clicks()
        passing = iter(data)
        next(passing)
        with self.assertRaisesRegex(regattarec.FailedPreconditionError, "under way"):
            next(iter(data))
        passing.close()
        self.assertEqual(len(list(data)), 3)

    def test_generated_clicks_have_the_rate_and_ceiling_that_are_said(self):
        with tempfile.TemporaryDirectory() as folder:
            told = generate(folder, samples=4000, test_samples=1000, slots=5, dense=0, ids=50, click_rate=0.3)
            batches = list(Dataset(f"{folder}/train", slots=5, batch_size=1000, tensors=False))
            labels = np.concatenate([batch.labels for batch in batches])
        self.assertEqual((told["train"]["samples"], told["test"]["samples"]), (4000, 1000))
        self.assertEqual(len(labels), 4000)
        self.assertEqual(labels.sum(), told["train"]["clicks"])
        self.assertAlmostEqual(labels.mean(), 0.3, delta=0.03)
        self.assertGreater(told["test"]["auc"], 0.6)

    def test_a_copy_in_another_process_reads_for_itself(self):
        data = open_clicks()
        next(iter(data))
        self.assertEqual(len(list(pickle.loads(pickle.dumps(open_clicks())))), 3)

    def test_ctrl_c_ends_a_wait_for_data(self):
        code = f"""
from regattarec.data import Dataset
print("begun", flush=True)
try:
    for batch in Dataset({str(CLICKS)!r}, slots=26, dense_dim=13, batch_size=16, pipe_command="sleep 100"):
        pass
except KeyboardInterrupt:
    print("interrupted")
"""
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "begun\n")
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=20)[0], "interrupted\n")

    def test_a_loader_of_pytorch_takes_it(self):
        code = f"""
import torch, regattarec.data
class Clicks(torch.utils.data.IterableDataset):
    def __init__(self): self.data = regattarec.data.Dataset({str(CLICKS)!r}, slots=26, dense_dim=13, batch_size=32)
    def __iter__(self): return iter(self.data)
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Clicks(), batch_size=None, num_workers=1, multiprocessing_context="spawn")
    batches = list(loader)
    assert len(batches) == 3 and batches[0].keys.dtype == torch.int64 and batches[0].labels.shape == (32,), batches
"""
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "loader.py"
            script.write_text(code)
            done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, env=os.environ)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])

    def test_a_loader_of_pytorch_takes_it_as_it_is(self):
        """Each process of the loader reads its share, whether it is forked or spawned."""
        code = """
import sys, torch, regattarec, regattarec.data
from torch.utils.data import DataLoader
def lines(batches):
    return sorted(tuple(row.tolist()) for batch in batches for row in batch.dense)
if __name__ == "__main__":
    open_files = lambda **how: regattarec.data.Dataset("parts", slots=26, dense_dim=13, batch_size=32, **how)
    want = lines(open_files())
    assert len(want) == 320
    for how in (dict(num_workers=0), dict(num_workers=1), dict(num_workers=2), dict(num_workers=4, multiprocessing_context="spawn")):
        loader = DataLoader(open_files(), batch_size=None, **how)
        for _ in range(2):
            assert lines(loader) == want, how
    try:
        list(DataLoader(open_files(), batch_size=None, num_workers=5))
    except regattarec.Error as error:
        assert "gets none of the 4 files" in str(error) and "num_workers=4 is the most" in str(error), error
    else:
        raise AssertionError("not refused")
"""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "parts").mkdir()
            for i in range(4):
                (pathlib.Path(folder) / "parts" / f"part-{i}").write_text(CLICKS.read_text())
            script = pathlib.Path(folder) / "loader.py"
            script.write_text(code)
            done = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True, timeout=120, env=os.environ)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
