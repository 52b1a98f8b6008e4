"""The same scripts on servers: workers together equal one process, and what goes wrong ends the job with its reason."""
import json
import signal
import subprocess
import unittest

from script import BIN, PYTHON, ScriptTest, free_port

TWO = ("--server_num=2", "--worker_num=2")

# Each worker takes its half of every batch; alone a process takes all of it. Prints the end of training.
TOGETHER = """
import json, os, sys
import torch, torch.nn.functional as F
import regattarec.torch as rt
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
mode, skip = sys.argv[1], sys.argv[2] == "skip"
rank, workers = int(os.environ.get("PADDLE_TRAINER_ID", 0)), int(os.environ.get("PADDLE_TRAINERS_NUM", 1))
rt.init(mode=mode)
torch.manual_seed(rank)       # the first worker's values are everybody's
e = rt.EmbeddingBag(None, 4, mode="mean", table="slots", rule=rt.Adagrad(lr=0.1), init=rt.Uniform(0.1))
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
o = rt.wrap(torch.optim.Adam(net.parameters(), lr=0.01), e, dense="server")
for k in range(60):
    g = torch.Generator().manual_seed(k)
    ids, y = torch.randint(-50, 50, (32, 3), generator=g), torch.randint(0, 2, (32,), generator=g).float()
    mine = slice(rank * 32 // workers, (rank + 1) * 32 // workers)
    if k == 30 and skip:      # here only the first half is learnt
        mine = slice(0, 16)
    loss = F.binary_cross_entropy_with_logits(net(e(ids[mine])).squeeze(1), y[mine])
    o.zero_grad()
    if not (k == 30 and skip and rank == 1):
        loss.backward()
    o.step()
rt.save("model", model=net, optimizer=o)
with torch.no_grad():
    rows = e(torch.arange(-50, 50)[:, None])
print(json.dumps([[p.tolist() for p in net.parameters()], rows.tolist()]))
"""


def numbers(tree):
    if isinstance(tree, list):
        return [x for part in tree for x in numbers(part)]
    return [tree]


class TorchClusterTest(ScriptTest):
    def result(self, out):
        return numbers(json.loads(next(line for line in out.splitlines() if line.startswith("[["))))

    def test_two_workers_of_sync_equal_one_process_with_both_halves(self):
        for skip in ("all", "skip"):
            with self.subTest(skip):
                alone = self.result(self.run_script(TOGETHER, "sync", skip))
                self.run_script(TOGETHER, "sync", skip, launch=TWO)
                together = [self.result(self.log(f"workerlog.{i}")) for i in range(2)]
                self.assertEqual(together[0], together[1])
                self.assertLess(max(abs(a - b) for a, b in zip(alone, together[0])), 1e-5)
                self.assertGreater(max(map(abs, alone)), 0.1)

    def test_every_mode_learns_and_saves(self):
        for mode in ("async", "half_async", "geo"):
            with self.subTest(mode):
                self.run_script(TOGETHER, mode, "all", launch=TWO)
                ls = subprocess.run([BIN / "regatta", "checkpoint", "ls", self.folder / "model", "--json"], capture_output=True,
                                    text=True, check=True).stdout
                self.assertEqual(json.loads(ls)[-1]["rows"], 100, ls)

    def test_an_exception_in_a_worker_ends_the_job_with_its_words(self):
        self.run_script("""
            import os, torch, regattarec.torch as rt
            rt.init(mode="sync")
            e = rt.Embedding(None, 2)
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
            for k in range(1000):
                e(torch.tensor([k])).sum().backward()
                o.step()
                if k == 5 and os.environ["PADDLE_TRAINER_ID"] == "1":
                    raise ValueError("out of cheese")
            """, launch=TWO, code=1)
        self.assertIn("out of cheese", self.log("workerlog.1"))
        self.assertRegex(self.log("serverlog.0"), "worker 1 gives up: ValueError: out of cheese")

    def test_workers_that_disagree_are_refused_with_the_difference(self):
        self.run_script("""
            import os, torch, regattarec.torch as rt
            e = rt.Embedding(None, 2 + int(os.environ.get("PADDLE_TRAINER_ID", 0)))
            e(torch.tensor([1]))
            """, launch=TWO, code=1)
        self.assertRegex(self.log("workerlog.0") + self.log("workerlog.1"), r"dim")

    def test_a_missing_server_is_named_and_ctrl_c_ends_the_wait(self):
        script = self.folder / "wait.py"
        script.write_text("import torch, regattarec.torch as rt\nrt.Embedding(None, 2)(torch.tensor([1]))\n")
        env = {**self.env, "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "1",
               "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:9"}
        done = subprocess.run([*PYTHON, script], env={**env, "REGATTA_SERVER_WAIT_TIMEOUT": "2"}, text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("127.0.0.1:9", done.stderr.splitlines()[-1])
        with subprocess.Popen([*PYTHON, script], env=env, text=True, stderr=subprocess.PIPE) as process:
            for line in process.stderr:
                if "server not ready" in line:
                    break
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
        self.assertIn("KeyboardInterrupt", rest)
        self.assertEqual(process.returncode, -signal.SIGINT)

    def test_ctrl_c_ends_a_step_that_waits_for_another_worker(self):
        """Worker 1 makes no step: worker 0 waits in its second one, until it is interrupted."""
        port = free_port("127.0.0.1")
        script = self.folder / "wait.py"
        script.write_text("""
import os, time, torch, regattarec.torch as rt
rt.init(mode="sync")
e = rt.Embedding(None, 2)
o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
for k in range(3):
    if k == 1:
        print("one step", flush=True)
        time.sleep(100 * int(os.environ["PADDLE_TRAINER_ID"]))
    e(torch.tensor([k])).sum().backward()
    o.step()
""")
        env = {**self.env, "PADDLE_TRAINERS_NUM": "2", "PADDLE_PSERVERS_IP_PORT_LIST": f"127.0.0.1:{port}"}

        def start(**role):
            process = subprocess.Popen([*PYTHON, script], env={**env, **role}, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            return process

        start(TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1", PADDLE_PORT=str(port))
        workers = [start(TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=str(i)) for i in range(2)]
        for worker in workers:
            self.assertEqual(worker.stdout.readline(), "one step\n")
        with self.assertRaises(subprocess.TimeoutExpired):
            workers[0].wait(timeout=1)
        workers[0].send_signal(signal.SIGINT)
        said = workers[0].communicate(timeout=20)[1]
        self.assertEqual(workers[0].returncode, -signal.SIGINT, said)
        self.assertIn("KeyboardInterrupt", said)


if __name__ == "__main__":
    unittest.main()
