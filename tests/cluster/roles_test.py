"""The role comes from the environment: what a reader of the old documents exports and types."""
import signal
import subprocess
import time

from cluster import BIN, ClusterTest, FleetJob, free_port, main


class FleetRolesTest(FleetJob):
    def test_workers_wait_for_servers_and_all_end_well(self):
        self.make_job(files=2)
        self.prepare(2, 2, "-o", "runner.sync_mode=sync")
        workers = [self.worker(0), self.worker(1)]
        missing = f"not ready endpoints:['{self.hosts[0]}:{self.port}', '{self.hosts[1]}:{self.port}']"
        self.await_line("w0.log", missing)
        time.sleep(3.5)  # the line comes every 3 seconds
        self.assertGreaterEqual(self.log("w0.log").count("server not ready, wait 3 sec to retry..."), 2)
        servers = [self.server(0), self.server(1)]
        for i in range(2):
            self.ends(workers[i], 0, f"w{i}.log")
        for i in range(2):
            self.ends(servers[i], 0, f"s{i}.log", 15)
        self.assertRegex(self.log("s0.log"), rf"(?m)^I\d{{4}} .*\] Server listening on 127.0.0.11:{self.port} "
                                             rf"selected port: {self.port}$")
        self.assertIn("Communicator start", self.log("w0.log"))
        self.assertIn("init rpc client with trainer_id 1", self.log("w1.log"))
        self.assertTrue((self.folder / "model" / "1" / "MANIFEST").exists())

    def test_no_server_ever(self):
        self.make_job(files=1)
        self.prepare(2, 1, "-o", "runner.server_wait_timeout=4")
        start = time.monotonic()
        worker = self.worker(0)
        stopped = self.role("stopped.log", *self.args, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="0")
        self.await_line("stopped.log", "not ready", stopped)
        stopped.send_signal(signal.SIGTERM)
        self.ends(stopped, 143, "stopped.log")
        self.assertNotIn("saving", self.log("stopped.log"))
        self.assertIn("there was nothing to save", self.log("stopped.log").splitlines()[-1])
        self.ends(worker, 1, "w0.log", 12)
        self.assertGreater(time.monotonic() - start, 3)
        last = self.log("w0.log").splitlines()[-1]
        for host in self.hosts:
            self.assertIn(f"'{host}:{self.port}'", last)

    def test_data_that_is_not_there_is_said_before_servers_are_waited_for(self):
        self.make_job(files=1)
        self.prepare(1, 1)
        (self.folder / "none").mkdir()
        self.ends(self.worker(0, "-o", "runner.test_data_dir=none"), 1, "w0.log", 20)
        self.assertRegex(self.log("w0.log").splitlines()[-1], r"runner\.test_data_dir: folder .*/none holds no files")
        self.assertNotIn("not ready", self.log("w0.log"))

    def test_wrong_environments_end_at_once(self):
        self.make_job(files=1)
        self.prepare(1, 1)
        boss = self.role("boss.log", *self.args, TRAINING_ROLE="BOSS")
        self.ends(boss, 2, "boss.log")
        self.assertRegex(self.log("boss.log"), "PSERVER.*TRAINER")
        elsewhere = self.role("else.log", *self.args, TRAINING_ROLE="PSERVER", POD_IP="127.0.0.99",
                              PADDLE_PORT=str(self.port))
        self.ends(elsewhere, 2, "else.log")
        self.assertIn("127.0.0.99", self.log("else.log"))
        del self.env["PADDLE_PSERVERS_IP_PORT_LIST"], self.env["PADDLE_TRAINERS_NUM"]
        nothing = self.role("none.log", *self.args, TRAINING_ROLE="PSERVER")
        self.ends(nothing, 2, "none.log")
        for name in ("PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINERS_NUM", "PADDLE_PORT"):
            self.assertIn(name, self.log("none.log").splitlines()[-1])


class V2Test(ClusterTest):
    def test_pserver_flags_and_paddle_init(self):
        self.make_job(files=1)
        while True:  # two ports in a row
            port = free_port()
            try:
                import socket
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + 1))
                break
            except OSError:
                continue
        flags = (f"--port={port}", "--ports_num=1", "--ports_num_for_sparse=1", "--num_gradient_servers=1")
        server = self.role("pserver.log", "pserver", *flags)
        self.await_line("pserver.log", f"selected port: {port + 1}", server)
        self.assertEqual(self.log("pserver.log").count("Server listening on"), 2)
        second = self.role("second.log", "pserver", *flags)
        self.ends(second, 2, "second.log", 10)
        self.assertIn(str(port), self.log("second.log").splitlines()[-1])
        worker = self.role("w.log", "train", "-m", "config.yaml", PADDLE_INIT_USE_GPU="False",
                           PADDLE_INIT_TRAINER_COUNT="1", PADDLE_INIT_PORT=str(port), PADDLE_INIT_PORTS_NUM="1",
                           PADDLE_INIT_PORTS_NUM_FOR_SPARSE="1", PADDLE_INIT_NUM_GRADIENT_SERVERS="1",
                           PADDLE_INIT_TRAINER_ID="0", PADDLE_INIT_PSERVERS="127.0.0.1")
        self.ends(worker, 0, "w.log")
        self.ends(server, 0, "pserver.log", 15)

    def test_the_server_needs_no_libtorch(self):
        linked = subprocess.run(["ldd", BIN / "regatta-pserver"], capture_output=True, text=True, check=True).stdout
        self.assertIn("grpc", linked)
        self.assertNotIn("torch", linked)


if __name__ == "__main__":
    main()
