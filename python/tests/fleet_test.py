"""PaddlePaddle's Fleet: one script plays servers and workers, by the variables that its documents export."""
import os
import pathlib
import subprocess
import sys
import time
import unittest

from script import BIN, PYTHON, ScriptTest, free_port

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "torch_fleet" / "train.py"
HOSTS = ("127.0.0.11", "127.0.0.12")
TWO = ("--server_num=2", "--worker_num=2")


class FleetTest(ScriptTest):
    def start(self, name, *arguments, **env):
        log = open(self.folder / f"{name}.log", "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen([*PYTHON, "-u", *map(str, arguments)], cwd=self.folder,
                                   env={**self.env, **{key: str(value) for key, value in env.items()}}, stdout=log,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        return process

    def said(self, name):
        return (self.folder / f"{name}.log").read_text()

    def await_line(self, name, words):
        deadline = time.monotonic() + 60
        while words not in self.said(name):
            self.assertLess(time.monotonic(), deadline, self.said(name))
            time.sleep(0.02)

    def ends(self, name, process, code=0, seconds=60):
        self.assertEqual(process.wait(timeout=seconds), code, self.said(name)[-3000:])

    def test_the_ten_lines_by_the_documents_variables(self):
        port = free_port(*HOSTS)
        job = {"PADDLE_PSERVERS_IP_PORT_LIST": ",".join(f"{host}:{port}" for host in HOSTS), "PADDLE_TRAINERS_NUM": 2,
               "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
        command = (EXAMPLE, "--is_cloud=1", "--epochs=2")
        workers = [self.start(f"w{i}", *command, **job, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=i) for i in range(2)]
        for i in range(2):
            self.await_line(f"w{i}", "server not ready, wait 3 sec to retry...")
            self.assertIn(f"not ready endpoints:{[f'{host}:{port}' for host in HOSTS]}", self.said(f"w{i}"))
        servers = [self.start(f"s{i}", *command, **job, TRAINING_ROLE="PSERVER", POD_IP=HOSTS[i], PADDLE_PORT=port)
                   for i in range(2)]
        for i in range(2):
            self.ends(f"w{i}", workers[i])
        for i in range(2):
            self.ends(f"s{i}", servers[i], seconds=15)
        self.assertRegex(self.said("s0"), rf"(?m)^I\d{{4}} .*\] Server listening on {HOSTS[0]}:{port} selected port: {port}$")
        self.assertIn("Communicator start", self.said("w0"))
        self.assertIn("init rpc client with trainer_id 1", self.said("w1"))
        losses = [float(line.split()[-1]) for line in self.said("w0").splitlines() if line.startswith("epoch ")]
        self.assertEqual(len(losses), 2)
        self.assertLess(losses[1], losses[0])
        self.assertNotIn("epoch 0", self.said("w1"))
        for epoch in range(2):
            self.assertTrue((self.folder / f"fleet_model/epoch_{epoch}/MANIFEST").exists())

    def test_an_environment_that_is_no_role(self):
        for env, words in (({"TRAINING_ROLE": "BOSS"}, ("PSERVER", "TRAINER")),
                           ({"TRAINING_ROLE": "PSERVER"},
                            ("PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINERS_NUM", "PADDLE_PORT"))):
            with self.subTest(env):
                process = self.start("none", EXAMPLE, "--is_cloud=1", **env)
                self.ends("none", process, 2)
                last = self.said("none").splitlines()[-1]
                for word in words:
                    self.assertIn(word, last)

    def test_no_server_ever(self):
        port = free_port("127.0.0.1")
        worker = self.start("w", EXAMPLE, "--is_cloud=1", TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=0,
                            PADDLE_TRAINERS_NUM=1, PADDLE_PSERVERS_IP_PORT_LIST=f"127.0.0.1:{port}",
                            REGATTA_SERVER_WAIT_TIMEOUT=4)
        self.ends("w", worker, 1, 20)
        self.assertIn(f"127.0.0.1:{port}", self.said("w").splitlines()[-1])
        self.assertIn("DeadlineExceededError", self.said("w").splitlines()[-1])

    def test_alone_and_under_the_launchers(self):
        out = subprocess.run([*PYTHON, EXAMPLE, "--epochs=1"], cwd=self.folder, env=self.env, capture_output=True,
                             text=True, timeout=100)
        self.assertEqual(out.returncode, 0, out.stderr)
        alone = float(out.stdout.split()[-1])
        env = self.env | {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}  # whose python3 they take
        for launcher in ([BIN / "regatta", "launch"], [BIN / "fleetrun"]):
            done = subprocess.run([*launcher, *TWO, *(["--"] if len(launcher) == 2 else []), EXAMPLE, "--is_cloud=1",
                                   "--epochs=1", "--mode=geo"], cwd=self.folder, env=env, capture_output=True, text=True,
                                  timeout=100)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertLess(abs(float(self.log("workerlog.0").split()[-1]) - alone), 0.2)

    SCRIPT = """
        import sys, numpy, torch, regattarec, regattarec.torch as rt
        from regattarec import fleet
        from regattarec.fleet import role_maker, StrategyFactory
        fleet.init(role_maker.PaddleCloudRoleMaker())
        e = rt.Embedding(None, 2, rule=rt.SGD(lr=1.0), init=rt.Constant(0.0))
        w = torch.nn.Linear(1, 1)
        o = fleet.distributed_optimizer(torch.optim.Adam(w.parameters(), lr=0.1), StrategyFactory.create_sync_strategy())
        if fleet.is_server():
            fleet.init_server(*sys.argv[1:])
            fleet.run_server()
        if fleet.is_worker():
            fleet.init_worker()
            {body}
        """

    def test_what_workers_do_together(self):
        self.run_script(self.SCRIPT.replace("{body}", """
            i = fleet.worker_index()
            print("place", i, fleet.worker_num(), fleet.server_num(), fleet.is_first_worker(), fleet.server_index(),
                  len(fleet.server_endpoints()), fleet.server_endpoints(to_string=True).count(","))
            print("files", fleet.split_files(["a", "b", "c"]))
            print("sum", fleet.all_reduce_worker([1 + i, 10]).tolist(), fleet.all_reduce_worker(0.5 * i))
            print("least", fleet.all_reduce_worker(i, mode="min"), "most", fleet.all_reduce_worker(i, mode="max"))
            out = numpy.zeros((2, 2), dtype=numpy.float32)
            fleet.all_reduce_worker(numpy.full((2, 2), i + 1.0), out)
            print("out", out.tolist())
            for k in range(5 + i):                 # one worker makes a step more than the other
                o.zero_grad(); e(torch.tensor([1])).sum().backward(); o.step()
            fleet.barrier_worker()
            print("row", rt.to_embedding(e, [1]).weight.tolist())
            """.strip()), launch=TWO)
        for i in range(2):
            log = self.log(f"workerlog.{i}")
            self.assertIn(f"place {i} 2 2 {i == 0} -1 2 1", log)
            self.assertIn(f"files {[['a', 'b'], ['c']][i]}", log)
            self.assertIn("sum [3, 20] 0.5", log)
            self.assertIn("least 0 most 1", log)
            self.assertIn("out [[3.0, 3.0], [3.0, 3.0]]", log)
            self.assertIn("row [[-6.0, -6.0]]", log)  # a step is the mean over its samples, of one or two workers

    def test_training_goes_on_from_a_save_at_the_servers_and_at_the_workers(self):
        step = "o.zero_grad(); (e(torch.tensor([1])).sum() + w(torch.ones(1, 1)).sum()).backward(); o.step()"
        show = 'print("now", rt.to_embedding(e, [1]).weight.tolist(), [p.item() for p in w.parameters()])'
        first = f"""
            torch.manual_seed(1)
            for k in range(3):
                {step}
            fleet.save_persistables(None, "saved")
            {show}
            for k in range(2):
                {step}
            fleet.barrier_worker()
            {show}
            """.strip()
        goes_on = f"""
            LOAD
            {show}
            for k in range(2):
                {step}
            fleet.barrier_worker()
            {show}
            """.strip()
        self.run_script(self.SCRIPT.replace("{body}", first), launch=TWO)
        want = [line for line in self.log("workerlog.0").splitlines() if line.startswith("now")]
        self.assertEqual(len(want), 2)
        for load, arguments in (('fleet.load_model("saved")', ()), ("pass", ("saved",))):
            with self.subTest(load):
                self.run_script(self.SCRIPT.replace("{body}", goes_on.replace("LOAD", load)), *arguments, launch=TWO)
                for i in range(2):
                    self.assertEqual([line for line in self.log(f"workerlog.{i}").splitlines() if line.startswith("now")], want)
        # Alone: the dense parameters are this process's own.
        script = self.SCRIPT.replace("{body}", first).replace('"saved"', '"alone"')
        want = [line for line in self.run_script(script).splitlines() if line.startswith("now")]
        out = self.run_script(self.SCRIPT.replace("{body}", goes_on.replace("LOAD", 'fleet.load_model("alone")')))
        self.assertEqual([line for line in out.splitlines() if line.startswith("now")], want)

    def test_every_end_says_goodbye(self):
        for end, code in (("sys.exit(0)", 0), ("pass", 0), ("fleet.stop_worker()", 0), ("raise ValueError('broken')", 1)):
            with self.subTest(end):
                self.run_script(self.SCRIPT.replace("{body}", end), launch=TWO, code=code)
                self.assertEqual("broken" in self.log("serverlog.0"), code == 1)

    def test_a_session_of_a_job_that_was_joined_before_says_so(self):
        self.run_script(self.SCRIPT.replace("{body}", """
            try:
                with rt.session():
                    pass
            except regattarec.FailedPreconditionError as error:
                print("refused:", error)
            """.strip()), launch=(*TWO, "--max_restarts=1"))
        self.assertIn("refused: killed workers of this job", self.log("workerlog.0"))

    def test_roles_that_the_program_names(self):
        port = free_port("127.0.0.1")
        script = self.folder / "explicit.py"
        script.write_text("import sys\n" + self.SCRIPT.replace("\n        ", "\n").replace(
            "role_maker.PaddleCloudRoleMaker()",
            "role_maker.UserDefinedRoleMaker(current_id=0, role=role_maker.Role[sys.argv.pop()], worker_num=1, "
            f"server_endpoints=['127.0.0.1:{port}'])").replace(
                "{body}", "e(torch.tensor([1])).sum().backward(); o.step(); print('done', fleet.worker_num())"))
        server = self.start("server", script, "SERVER")
        worker = self.start("worker", script, "WORKER")
        self.ends("worker", worker)
        self.ends("server", server)
        self.assertIn("done 1", self.said("worker"))

    def test_wrong_use_says_what_to_do(self):
        out = self.run_script("""
            import torch, regattarec, regattarec.torch as rt
            from regattarec import fleet
            from regattarec.fleet import role_maker, StrategyFactory, DistributedStrategy, DistributeTranspilerConfig
            from refusals import fails
            def change(settings, **values):
                for name, value in values.items():
                    setattr(settings, name, value)
                return settings
            fails(fleet.is_server)
            fails(lambda: fleet.init(is_collective=True))
            fails(lambda: fleet.init("worker"))
            fails(lambda: role_maker.UserDefinedRoleMaker(server_endpoints="127.0.0.1:1"))
            fails(lambda: role_maker.UserDefinedRoleMaker(role="worker"))
            fails(lambda: role_maker.UserDefinedRoleMaker(5, server_endpoints=["127.0.0.1:36000"]).make())
            fails(lambda: role_maker.UserDefinedRoleMaker(0, server_endpoints=["10.1.2.3:36000"]).make())
            fails(lambda: StrategyFactory.create_geo_strategy(0))
            fails(lambda: change(DistributedStrategy(), a_synk=True))
            fails(lambda: change(DistributedStrategy(), a_sync_configs={"k_steps": 5, "launch_barrier": 1}).strategy())
            for settings, want in ((change(DistributedStrategy(), a_sync=False), "Strategy('sync')"),
                                   (DistributedStrategy(), "Strategy('async')"),
                                   (change(DistributedStrategy(), a_sync_configs={"k_steps": 7}), "Strategy('geo', 7)"),
                                   (DistributeTranspilerConfig(), "Strategy('sync')"),
                                   (change(DistributeTranspilerConfig(), sync_mode=False), "Strategy('half_async')"),
                                   (change(DistributeTranspilerConfig(), sync_mode=False, runtime_split_send_recv=True),
                                    "Strategy('async')"),
                                   (StrategyFactory.create_geo_strategy(), "Strategy('geo', 100)")):
                found = settings if isinstance(settings, fleet.Strategy) else settings.strategy()
                assert repr(found) == want, (found, want)
            fleet.init()
            fails(fleet.init)
            e = rt.Embedding(None, 2)
            fails(lambda: fleet.distributed_optimizer("adam"))
            fails(lambda: fleet.distributed_optimizer(torch.optim.Adam(torch.nn.Linear(1, 1).parameters()), "sync"))
            o = fleet.distributed_optimizer(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1))
            fails(fleet.init_server)
            fails(fleet.run_server)
            fails(fleet.barrier_worker)
            fleet.init_worker()
            fails(lambda: fleet.all_reduce_worker(["a"]))
            fails(lambda: fleet.all_reduce_worker([1], mode="mean"))
            fails(lambda: fleet.all_reduce_worker([2**63]))
            fails(lambda: fleet.split_files("a"))
            fails(lambda: fleet.save_persistables(None))
            fails(fleet.shrink)
            fails(fleet.save_inference_model)
            fails(lambda: fleet.load_model("nothing"))
            fleet.stop_worker()
            fails(lambda: e(torch.tensor([1])))
            fails(lambda: fleet.save_persistables("model"))
            """)
        self.assertNotIn("NO ERROR", out)
        for words in ("call fleet.init() first", "no collective training yet", "role: 'worker' is none", "is no list such as",
                      "neither Role.WORKER", "current_id: 5 is out of range", "10.1.2.3", "update_frequency: 0",
                      "has no 'a_synk'; there are: a_sync, a_sync_configs", "a_sync_configs has no launch_barrier",
                      "fleet.init comes once", "not str", "strategy: 'sync' is none", "ask is_server() first",
                      "comes after InitWorker", "takes numbers", "is above 2^63 - 1", "there are sum, min and max", "takes a list of paths",
                      "is no path", "shrink: tables do not count", "to_embedding and torch.save", "nothing",
                      "the job is over"):
            self.assertIn(words, out)


if __name__ == "__main__":
    unittest.main()
