"""Sessions: what a run that was stopped or killed learns is what it would have learnt otherwise."""
import json
import os
import re
import signal
import subprocess
import textwrap
import time
import unittest

from job import JobTest
from script import BIN, PYTHON

# Trains on made-up clicks, prints what the epochs came to and, at the end, every row and parameter. With stop_at it
# sends itself a signal at that step.
TRAIN = """
import json, os, signal, sys, time
import torch, torch.nn.functional as F
import regattarec.torch as rt
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
options = json.loads(sys.argv[1])
rank = int(os.environ.get("PADDLE_TRAINER_ID", 0))
rt.init(mode=options.get("mode", "sync"))
torch.manual_seed(rank)
e = rt.EmbeddingBag(None, 4, mode="mean", table="slots", rule=rt.Adagrad(lr=0.1), init=rt.Uniform(0.1))
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))
model = net
if options.get("dense") == "local" and "PADDLE_TRAINERS_NUM" in os.environ:
    rt.init_process_group()
    model = torch.nn.parallel.DistributedDataParallel(net)
o = rt.wrap(torch.optim.Adam(net.parameters(), lr=0.01), e, dense=options.get("dense"))

def clicks(epoch):
    for k in range(options.get("batches", 20)):
        g = torch.Generator().manual_seed(1000 * epoch + 10 * k + rank)
        ids = torch.rand(32, 3, generator=g).pow(3).mul(200).long() - 50
        yield ids, (torch.rand(32, generator=g) < torch.sigmoid(ids.float().mean(1) / 20)).float()

at, number = options.get("stop_at", -1), options.get("signal", signal.SIGKILL)
with rt.session(save=options.get("save"), checkpoint_steps=options.get("checkpoint_steps", 0)) as s:
    for epoch in s.epochs(options.get("epochs", 3)):
        for ids, y in s.batches(clicks):
            logits = model(e(ids)).squeeze(1)
            loss = F.binary_cross_entropy_with_logits(logits, y)
            s.observe(loss, predictions=torch.sigmoid(logits), labels=y)
            o.zero_grad(); loss.backward(); o.step()
            if options.get("write"):
                with open(f"predictions.{rank}", "a") as file:
                    print(json.dumps([torch.sigmoid(logits).tolist(), y.tolist(), loss.item()]), file=file)
            if options.get("pause"):
                time.sleep(options["pause"])
                print("step", s.step, flush=True)
            if s.step == at:
                os.kill(os.getpid(), number)
                time.sleep(0.3)
net.eval()
with torch.no_grad():
    rows = e(torch.arange(-50, 150)[:, None])
print(json.dumps({"parameters": [p.tolist() for p in net.parameters()], "rows": rows.tolist(),
                  "history": [{k: h[k] for k in ("epoch", "samples", "loss", "auc")} for h in s.history]}))
"""


def result(out):
    return json.loads(next(line for line in out.splitlines() if line.startswith('{"parameters"')))


class SessionTest(JobTest):
    def train(self, code=0, launch=(), **options):
        return self.run_script(TRAIN, json.dumps(options), code=code, launch=launch)

    def checkpoints(self, folder):
        return subprocess.run([BIN / "regatta", "checkpoint", "ls", self.folder / folder, "--json"], text=True,
                              capture_output=True, check=True).stdout

    def test_a_run_that_was_stopped_or_killed_goes_on_as_if_it_had_not_been(self):
        whole = result(self.train())
        self.assertEqual([entry["samples"] for entry in whole["history"]], [640] * 3)
        self.assertGreater(whole["history"][2]["auc"], 0.6)
        for number, at, again in ((signal.SIGINT, 7, 0), (signal.SIGTERM, 20, 0), (signal.SIGKILL, 33, 3)):
            with self.subTest(signal=number, at=at):
                save = f"save{number}"
                code = {signal.SIGTERM: 143}.get(number, -number)
                out = self.train(code, save=save, stop_at=at, signal=number, checkpoint_steps=10)
                self.assertNotIn("rows", out)
                if number != signal.SIGKILL:
                    self.assertIn("stopping after this step and saving", self.stderr)
                rest = result(self.train(save=save, checkpoint_steps=10))
                self.assertEqual(rest["parameters"], whole["parameters"])
                self.assertEqual(rest["rows"], whole["rows"])
                for mine, other in zip(reversed(rest["history"]), reversed(whole["history"])):
                    self.assertEqual(mine, other)

    def test_a_finished_run_is_begun_anew(self):
        self.train(save="model", epochs=1)
        self.assertEqual(len(result(self.train(save="model", epochs=1))["history"]), 1)

    def test_metrics_are_those_of_all_workers(self):
        out = self.train(launch=("--server_num=1", "--worker_num=2"), epochs=1, write=True)
        merged = result(self.log("workerlog.0"))["history"][0]
        self.assertEqual(merged["samples"], 2 * 640)
        self.assertIn("1,280 samples", out)
        steps = [json.loads(line) for rank in range(2)
                 for line in (self.folder / f"predictions.{rank}").read_text().splitlines()]
        self.assertAlmostEqual(merged["loss"], sum(step[2] for step in steps) / len(steps), places=5)
        clicks = [p for step in steps for p, y in zip(step[0], step[1]) if y == 1]
        others = [p for step in steps for p, y in zip(step[0], step[1]) if y == 0]
        right = sum((p > q) + 0.5 * (p == q) for p in clicks for q in others)
        self.assertAlmostEqual(merged["auc"], right / (len(clicks) * len(others)), places=4)

    def launch(self, name, **options):
        script = self.folder / "train.py"
        script.write_text(TRAIN)
        return self.start_job(name, *PYTHON, script, json.dumps({"save": name, **options}))

    def await_step(self, name, process, step):
        self.await_words(name, process, lambda said: any(int(n) >= step for n in re.findall(r"(?m)^step (\d+)$", said)))

    def ends_well(self, name, process):
        return result(self.end_job(name, process))

    def test_servers_and_workers_killed_with_dense_parameters_on_servers_change_no_byte(self):
        job = dict(epochs=3, batches=25, pause=0.02, dense="server")
        whole = self.ends_well("straight", self.launch("straight", **job))
        process = self.launch("killed", **job)
        for step, killed in ((5, "worker 1"), (20, "server 0"), (35, "worker 0"), (50, "server 1"), (60, "worker 1")):
            self.await_step("killed", process, step)
            self.kill("killed", killed)
        again = self.ends_well("killed", process)
        self.assertEqual(self.said("killed").count("started again as pid"), 5, self.said("killed"))
        for epoch in range(3):
            self.assertEqual(self.dump(f"killed/{epoch}"), self.dump(f"straight/{epoch}"), epoch)
        self.assertEqual(again["rows"], whole["rows"])
        self.assertEqual(again["parameters"], whole["parameters"])

    def test_a_worker_killed_with_dense_parameters_of_its_own_returns_the_job_to_its_last_checkpoint(self):
        job = dict(epochs=2, batches=25, pause=0.02, dense="local", checkpoint_steps=7)
        whole = self.ends_well("straight", self.launch("straight", **job))
        process = self.launch("killed", **job)
        for times, (step, killed) in enumerate(((12, ["worker 1"]), (30, ["worker 0", "worker 1"]), (45, ["worker 0"])), 1):
            self.await_step("killed", process, step)
            for one in killed:
                self.kill("killed", one)
            deadline = time.monotonic() + 60
            while self.said("killed").count("the job begins again") < times:
                self.assertLess(time.monotonic(), deadline, self.said("killed")[-3000:])
                time.sleep(0.01)
        again = self.ends_well("killed", process)
        self.assertIn("resuming epoch", self.said("killed"))
        self.assertEqual(self.dump("killed/1"), self.dump("straight/1"))
        self.assertEqual(again["rows"], whole["rows"])
        self.assertEqual(again["parameters"], whole["parameters"])

    def test_a_signal_ends_a_wait_for_data_and_the_run_is_saved(self):
        (self.folder / "clicks.txt").write_text("click:1 1:7\n" * 20)
        script = self.folder / "script.py"
        script.write_text(textwrap.dedent("""
            import torch, regattarec.torch as rt
            from regattarec.data import Dataset
            e = rt.Embedding(None, 1, rule=rt.SGD(lr=1.0), init=rt.Constant(0.0))
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
            hangs = Dataset("clicks.txt", slots=1, batch_size=5, pipe_command="sleep 100")
            with rt.session(save="model") as s:
                for epoch in s.epochs(2):
                    print("epoch", epoch, "begins", flush=True)
                    for batch in s.batches(range(3) if epoch == 0 else hangs):
                        e(torch.tensor([1])).sum().backward(); o.step(); o.zero_grad()
            """))
        process = subprocess.Popen([*PYTHON, script], cwd=self.folder, env=self.env, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.addCleanup(process.kill)
        while process.stdout.readline() != "epoch 1 begins\n":
            self.assertIsNone(process.poll())
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=20)[0]
        self.assertEqual(process.returncode, 143, said)
        self.assertIn("stopped in epoch 1 at batch 0; saved", said)
        self.assertEqual(json.loads(self.checkpoints("model"))[-1]["step"], 3)

    def test_ctrl_c_ends_with_one_line_that_says_how_to_go_on(self):
        script = self.folder / "script.py"
        script.write_text(textwrap.dedent("""
            import os, signal, sys, torch, regattarec.torch as rt
            e = rt.Embedding(None, 1, rule=rt.SGD(lr=1.0), init=rt.Constant(0.0))
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
            with rt.session(save=sys.argv[1] or None) as s:
                for epoch in s.epochs(2):
                    for k in s.batches(range(10)):
                        e(torch.tensor([1])).sum().backward(); o.step(); o.zero_grad()
                        if k == 3:
                            os.kill(os.getpid(), signal.SIGINT)
            """))
        for folder, words in (("model", "saved, the same command goes on from there"), ("", "nothing is saved")):
            with self.subTest(folder):
                done = subprocess.run([*PYTHON, script, folder], cwd=self.folder, env=self.env, text=True, capture_output=True,
                                      timeout=120)
                said = done.stdout + done.stderr
                self.assertIn(done.returncode, (-signal.SIGINT, 130), said)
                self.assertIn(f"stopped in epoch 0 at batch 4; {words}", said)
                self.assertNotIn("Traceback", said)
                self.assertNotIn("--resume", said)
                self.assertEqual(done.stderr.splitlines()[-1], "KeyboardInterrupt: stopped by Ctrl+C")

    def test_a_loop_without_steps_is_told_once(self):
        script = """
            import sys, torch, warnings, regattarec.torch as rt
            e = rt.Embedding(None, 1)
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with rt.session() as s:
                    for epoch in s.epochs(3):
                        for k in s.batches(range(int(sys.argv[1]))):
                            o.zero_grad(); e(torch.tensor([1])).sum().backward()
                            if sys.argv[2] == "steps" and epoch == 0 and k == 4:
                                o.step()
            print([str(w.message) for w in caught])
            """
        self.assertIn("['no step in 5 batches, so nothing is learnt: call optimizer.step()", self.run_script(script, "5", "none"))
        said = self.run_script(script, "150", "none")
        self.assertIn("['no step in 100 batches", said)
        self.assertEqual(said.count("no step in"), 1)
        self.assertIn("[]", self.run_script(script, "5", "steps").splitlines()[-1])

    def test_a_second_session_in_a_process_is_refused(self):
        out = self.run_script("""
            import torch, regattarec.torch as rt
            from refusals import fails
            e = rt.Embedding(None, 1)
            o = rt.wrap(None, e)
            with rt.session() as s:
                for epoch in s.epochs(1):
                    for k in s.batches(range(2)):
                        e(torch.tensor([1])).sum().backward(); o.step()
            fails(rt.session().__enter__)
            """)
        self.assertIn("FailedPreconditionError this process has had a session, and a process makes one", out)

    def test_what_is_observed_has_to_be_possible(self):
        out = self.run_script("""
            import torch, regattarec, regattarec.torch as rt
            e = rt.Embedding(None, 1, rule=rt.SGD(lr=1.0), init=rt.Constant(0.0))
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
            with rt.session(save="model") as s:
                for epoch in s.epochs(1):
                    for k in s.batches(range(3)):
                        for wrong in (dict(loss=torch.ones(2)), dict(loss=float("nan")), dict(predictions=[1.5], labels=[1]),
                                      dict(predictions=[0.5], labels=[5]), dict(predictions=[float("nan")], labels=[1])):
                            try:
                                s.observe(**wrong)
                                print("NO ERROR", wrong)
                            except regattarec.Error as error:
                                print(type(error).__name__, error)
                        s.observe(0.5, predictions=[0.5], labels=[1])
            """)
        self.assertNotIn("NO ERROR", out)
        self.assertEqual(out.count("InvalidArgumentError observe: loss is one number"), 3)
        self.assertEqual(out.count("DataLossError the loss of step"), 3)
        self.assertEqual(out.count("predictions from 1.5 to 1.5 are no probabilities"), 3)
        self.assertEqual(out.count("labels from 5.0 to 5.0"), 3)
        self.assertEqual(out.count("predictions from nan to nan"), 3)

    def test_an_epoch_and_a_run_may_be_left_early(self):
        out = self.run_script("""
            import torch, regattarec.torch as rt
            e = rt.Embedding(None, 2, rule=rt.SGD(lr=1.0), init=rt.Constant(0.0))
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
            def step():
                o.zero_grad(); e(torch.tensor([1])).sum().backward(); o.step()
            with rt.session(save="model") as s:
                for epoch in s.epochs(5):
                    for k in s.batches(range(10)):
                        step()
                        if k == 3:
                            break
                    print("epoch", epoch, "step", s.step, "history", len(s.history))
                    if epoch == 2:
                        break
            e.eval()
            print(e(torch.tensor([1])).tolist(), s.epoch, len(s.history))
            """)
        self.assertIn("epoch 0 step 4 history 0", out)
        self.assertIn("epoch 2 step 12 history 2", out)
        self.assertIn("[[-12.0, -12.0]] 3 3", out)
        self.assertEqual(json.loads(self.checkpoints("model"))[-1]["step"], 12)

    def test_batches_that_are_left_out_and_accumulated(self):
        out = self.run_script("""
            import torch, regattarec.torch as rt
            e = rt.Embedding(None, 1, rule=rt.SGD(lr=1.0), init=rt.Constant(0.0))
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
            with rt.session() as s:
                for epoch in s.epochs(2):
                    for k in s.batches(list(range(9)), accumulate=3 if epoch == 0 else 1):
                        if epoch == 1 and k % 2:
                            continue                     # nothing is learnt of it
                        e(torch.tensor([1])).mean().backward()
                        if epoch == 1 or k % 3 == 2:
                            o.step(); o.zero_grad()
                    print("steps", s.step)
            e.eval()
            print(e(torch.tensor([1])).item())
            """)
        self.assertIn("steps 3\n", out)
        self.assertIn("steps 12\n", out)
        self.assertIn("-14.0\n", out)  # gradients add up, as PyTorch's do: 3 steps of 3 batches, of 1 each, and 5 of one

    def test_wrong_use_says_what_to_do(self):
        out = self.run_script("""
            import torch, regattarec, regattarec.torch as rt
            e = rt.Embedding(None, 1)
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
            from refusals import fails
            fails(lambda: rt.session(checkpoint_minutes=-1))
            fails(lambda: rt.session(checkpoint_minutes=5))
            fails(lambda: rt.session(metric="guess"))
            fails(lambda: rt.session(state=[3]))
            fails(lambda: next(rt.session().epochs(1)))
            s = rt.session(progress=False)
            with s:
                fails(lambda: s.batches([1]))
                fails(lambda: next(s.epochs(0)))
                fails(lambda: s.history.plot())
                fails(lambda: e(torch.tensor([1])))
                fails(lambda: rt.session().__enter__())
                for epoch in s.epochs(1):
                    for k in s.batches([1, 2]):
                        fails(lambda: s.observe(predictions=[1.0]))
                        fails(lambda: s.observe(predictions=[1.0, 2.0], labels=[1.0]))
                        fails(lambda: s.observe(predictions=["a"], labels=["b"]))
                        fails(lambda: rt.save("model"))
                        e(torch.tensor([1])).sum().backward()
                        o.step()
                    fails(lambda: s.batches([1]))
            def twice():
                with rt.session() as s:
                    for epoch in s.epochs(1):
                        for k in s.batches([1, 2]):
                            for _ in range(2):
                                e(torch.tensor([1])).sum().backward()
                                o.step()
            fails(twice)
            """)
        lines = out.splitlines()
        self.assertNotIn("NO ERROR", lines)
        for words in ("checkpoint_minutes: -1", "needs save=", "metric 'guess'", "a int has no state_dict",
                      "with statement", "batches go within an epoch", "epochs: 0", "no epoch is over yet",
                      "trains within its batches", "entered once", "go together", "2 predictions and 1 labels",
                      "predictions: ", "save between two of them"):
            self.assertTrue(any(words in line for line in lines), f"{words}\n{out}")

    def test_an_error_leaves_a_run_that_goes_on(self):
        script = """
            import sys, torch, regattarec.torch as rt
            e = rt.Embedding(None, 1, rule=rt.SGD(lr=1.0), init=rt.Constant(0.0))
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
            with rt.session(save="model", checkpoint_steps=4) as s:
                for epoch in s.epochs(2):
                    for k in s.batches(range(10)):
                        e(torch.tensor([1])).sum().backward(); o.step(); o.zero_grad()
                        if sys.argv[1] == "fail" and s.step == 15:
                            raise ValueError("out of cheese")
            e.eval()
            print("row", e(torch.tensor([1])).item())
            """
        self.run_script(script, "fail", code=1)
        self.assertIn("out of cheese", self.stderr)
        out = self.run_script(script, "go on")
        self.assertIn("resuming epoch 1 at batch 4", out)
        self.assertIn("row -20.0", out)


if __name__ == "__main__":
    unittest.main()
