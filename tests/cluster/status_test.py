"""Seeing into a running job: metrics of every process, `regatta status`, the first worker's report of the cluster."""
import http.server
import json
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from cluster import BIN, PATIENCE, SLOW, FleetJob, free_port, main

SAMPLE_LINE = re.compile(r'^([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*\})? (\S+)$')


def parse(text):
    """Samples by name and labels; fails on a line that is none, and on a family without HELP and TYPE."""
    types, helps, samples = {}, set(), {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helps.add(line.split(" ")[2])
        elif line.startswith("# TYPE "):
            types[line.split(" ")[2]] = line.split(" ")[3]
        else:
            match = SAMPLE_LINE.match(line)
            assert match, line
            family = re.sub(r"_(bucket|sum|count)$", "", match[1])
            assert (match[1] if match[1] in types else family) in types, line
            assert match[1] + (match[2] or "") not in samples, line
            samples[match[1] + (match[2] or "")] = float(match[3])
    assert helps == set(types), helps ^ set(types)
    return samples


class RunningJobTest(FleetJob):
    """Two servers and two workers in the middle of an epoch."""

    def start_job(self, mode, *more):
        self.make_job(files=2, copies=400)
        self.env.update(SLOW)
        self.prepare(2, 2, "-o", f"runner.sync_mode={mode}", "-o", "runner.epochs=1000", "-o",
                     "runner.split_file_list=True", "-o", "runner.print_interval=20", "--metrics_port=0", *more)
        self.processes = {f"s{i}": self.server(i) for i in range(2)}
        self.processes.update({f"w{i}": self.worker(i) for i in range(2)})

    def stop_job(self):
        self.processes["w0"].send_signal(signal.SIGTERM)
        self.ends(self.processes["w0"], 143, "w0.log", 30)
        self.ends(self.processes["w1"], 143, "w1.log", 30)
        for i in range(2):
            self.ends(self.processes[f"s{i}"], 0, f"s{i}.log", 30)

    def await_cluster_line(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for line in reversed(self.log("w0.log").splitlines()):
                match = re.search(r"ips: [\d.]+ ins/s, cluster workers: 2, cluster samples: (\d+), cluster loss: "
                                  r"([\d.]+), cluster ips: ([\d.]+) ins/s, slowest: worker ([01]) at ([\d.]+) of the "
                                  r"mean, staleness: ([\d.]+) updates$", line)
                if match and float(match[3]) > 0:
                    return line, match
            time.sleep(0.1)
        self.fail(f"no line of the cluster: {self.log('w0.log')[-2000:]}")

    def scrape(self, name):
        url = re.search(r"metrics: (http://127\.0\.0\.1:\d+/metrics)", self.log(f"{name}.log"))[1]
        with urllib.request.urlopen(url, timeout=5) as answer:
            self.assertIn("text/plain; version=0.0.4", answer.headers["Content-Type"])
            return parse(answer.read().decode())

    def status(self, *args, code=0):
        return self.run_regatta("status", *args, code=code, env=self.env)

    def test_an_async_job_shows_itself(self):
        self.start_job("async")
        _, cluster = self.await_cluster_line()
        self.assertGreater(int(cluster[1]), 100)
        self.assertLess(float(cluster[2]), 1.0)
        self.assertLessEqual(float(cluster[5]), 1.0)
        self.check_servers()
        self.check_workers()
        self.check_status()
        self.check_wrong_endpoints()
        self.stop_job()
        for line in self.log("w1.log").splitlines():
            self.assertNotIn("cluster workers", line)  # the first worker tells

    def check_servers(self):
        rows = 0
        for name in ("s0", "s1"):
            metrics = self.scrape(name)
            end = time.monotonic() + PATIENCE
            while metrics['regatta_server_worker_steps{worker="1"}'] == 0 and time.monotonic() < end:
                time.sleep(0.1)  # a worker's heartbeats tell each server on their own
                metrics = self.scrape(name)
            rows += metrics['regatta_table_rows{table="embedding"}']
            self.assertGreater(metrics['regatta_server_requests_total{verb="pull"}'], 10)
            self.assertGreater(metrics['regatta_server_keys_total{verb="push"}'], 100)
            self.assertGreater(metrics['regatta_server_bytes_total{direction="in"}'], 1000)
            self.assertGreater(metrics['regatta_server_bytes_total{direction="out"}'], 1000)
            self.assertGreaterEqual(metrics["regatta_server_shard_skew"], 1)
            self.assertEqual(metrics['regatta_server_workers{state="here"}'], 2)
            self.assertGreater(metrics['regatta_server_worker_steps{worker="1"}'], 0)
            self.assertGreater(metrics["regatta_server_staleness_updates_count"], 10)
            self.assertGreater(metrics['regatta_server_request_seconds_count{verb="push"}'], 10)
            self.assertEqual(metrics['regatta_server_request_seconds_count{verb="push"}'],
                             metrics['regatta_server_request_seconds_bucket{verb="push",le="+Inf"}'])
            self.assertGreater(metrics["regatta_process_resident_bytes"], 1e6)
        self.assertGreater(rows, 100)

    def check_workers(self):
        for name in ("w0", "w1"):
            metrics = self.scrape(name)
            self.assertGreater(metrics["regatta_worker_samples_total"], 100)
            steps, samples = metrics["regatta_worker_steps_total"], metrics["regatta_worker_samples_total"]
            self.assertGreater(samples, 9 * (steps - 10))  # batches of 10, the last of an epoch less; and some steps may
            self.assertLessEqual(samples, 10 * (steps + 10))  # have ended between the reading of the one and the other
            self.assertTrue(0 < metrics["regatta_worker_loss"] < 1)
            self.assertTrue(0 < metrics["regatta_worker_auc"] <= 1)
            for part in ("read", "pull", "compute", "commit"):
                self.assertGreater(metrics[f'regatta_worker_step_part_seconds_count{{part="{part}"}}'], 10)
            for server in "01":
                self.assertGreater(metrics[f'regatta_worker_bytes_total{{server="{server}",direction="out"}}'], 1000)
                for verb in ("pull", "push"):
                    labels = f'{{server="{server}",verb="{verb}"}}'
                    self.assertGreater(metrics["regatta_worker_request_seconds_count" + labels], 10)
                self.assertGreater(metrics[f'regatta_worker_staleness_updates_count{{server="{server}"}}'], 10)
            self.assertGreater(metrics["regatta_data_lines"], 10)
            self.assertEqual(metrics["regatta_data_bad_lines"], 0)

    def check_status(self):
        table, err = self.status()  # the servers by PADDLE_PSERVERS_IP_PORT_LIST
        self.assertEqual(err, "")
        lines = table.splitlines()
        self.assertRegex(lines[0], r"^SERVER +ENDPOINT +MODE +UP +ROWS +MEMORY +KEYS/S +IN +OUT +SKEW +STALENESS$")
        for i, host in enumerate(self.hosts):
            self.assertRegex(lines[1 + i], rf"^{i} +{host}:{self.port} +async +0:\d\d +\d+ +[\d.]+ MB +[1-9]\d*")
            self.assertEqual(lines[1 + i].find(host), lines[0].find("ENDPOINT"))
        self.assertRegex(lines[4], r"^WORKER +STATE +WHERE +HEARD +EPOCH +STEPS +SAMPLES +INS/S +LOSS +STALENESS$")
        for i in range(2):
            self.assertRegex(lines[5 + i], rf"^{i} +here +\S+, pid {self.processes[f'w{i}'].pid} +[\d.]+ s ago +\d+ +"
                                           rf"[1-9]\d* +[1-9]\d* ")
        out, _ = self.status("--json", "--servers", ",".join(f"{host}:{self.port}" for host in self.hosts))
        told = json.loads(out)
        self.assertEqual([server["server"] for server in told["servers"]], [0, 1])
        self.assertEqual([worker["rank"] for worker in told["workers"]], [0, 1])
        self.assertEqual(told["servers"][0]["mode"], "async")
        self.assertGreater(told["servers"][1]["keys_per_second"], 0)
        self.assertGreater(told["workers"][1]["samples"], 0)
        self.assertGreater(sum(worker["samples_per_second"] for worker in told["workers"]), 0)

    def check_wrong_endpoints(self):
        nobody = f"127.0.0.1:{free_port()}"
        out, err = self.status("--servers", f"{self.hosts[0]}:{self.port},{nobody}", code=1)
        self.assertIn(f"server {nobody} does not answer", err)
        self.assertIn(self.hosts[0], out)  # the one that does is shown
        out, _ = self.status("--json", "--servers", nobody, code=1)
        self.assertFalse(json.loads(out)["servers"][0]["ok"])

    def test_a_sync_job_tells_how_long_it_waited(self):
        self.start_job("sync", "--json")
        self.await_line("w0.log", '"slowest"', self.processes["w0"])
        line = next(line for line in self.log("w0.log").splitlines() if '"slowest"' in line)
        cluster = json.loads(line)["cluster"]
        self.assertEqual(cluster["workers"], 2)
        self.assertIn(cluster["slowest"]["worker"], (0, 1))
        self.assertGreater(cluster["ips"], 0)
        self.assertNotIn("staleness", cluster)
        self.assertGreater(self.scrape("s0")["regatta_server_sync_wait_seconds_count"], 10)
        told = json.loads(self.status("--json")[0])
        self.assertGreater(told["servers"][0]["sync_wait"], 0)
        self.assertNotIn("staleness", told["servers"][0])
        self.stop_job()


class UsageTest(FleetJob):
    def test_status_without_a_job_or_with_wrong_words(self):
        for words, says in ((("status",), "--servers"),
                            (("status", "--servers=here"), "here"),
                            (("status", "--servers=127.0.0.1:1", "--jso"), "--json"),
                            (("status", "--servers=10.0.0.1:36000"), "--insecure"),
                            (("status", "--servers=127.0.0.1:1", "--timeout=x"), "--timeout")):
            _, err = self.run_regatta(*words, code=2, env=self.env)
            self.assertIn(says, err)
        out, _ = self.run_regatta("status", "--help")
        self.assertIn("PADDLE_PSERVERS_IP_PORT_LIST", out)
        self.assertIn("status", self.run_regatta("--help")[0])

    def test_a_server_without_workers_is_up(self):
        port = free_port()
        server = self.role("p.log", "pserver", f"--port={port}", "--ports_num_for_sparse=0", "--log_dir=logs/here")
        self.await_line("p.log", "Server listening", server)
        self.assertTrue(list((self.folder / "logs" / "here").glob("regatta-pserver*")), "--log_dir is made")
        out, _ = self.run_regatta("status", f"--servers=127.0.0.1:{port}", env=self.env)
        self.assertIn("no worker has come yet", out)
        server.send_signal(signal.SIGHUP)  # a lost terminal
        self.ends(server, 129, "p.log", 10)

    def test_nohup_keeps_a_server(self):
        port = free_port()
        with open(self.folder / "n.log", "wb") as log:
            server = subprocess.Popen(["nohup", BIN / "regatta", "pserver", f"--port={port}",
                                       "--ports_num_for_sparse=0"], cwd=self.folder, env=self.env, stdout=log,
                                      stderr=log, stdin=subprocess.DEVNULL)
        self.started.append(server)
        self.await_line("n.log", "Server listening", server)
        server.send_signal(signal.SIGHUP)
        self.run_regatta("status", f"--servers=127.0.0.1:{port}", env=self.env)  # answers
        self.assertIsNone(server.poll())
        server.send_signal(signal.SIGTERM)
        self.ends(server, 143, "n.log", 10)

    def test_a_metrics_port_in_use_ends_every_process_at_once(self):
        self.make_job(files=2)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            for words in (("train", "-m", "config.yaml"), ("pserver", f"--port={free_port()}")):
                _, err = self.run_regatta(*words, f"--metrics_port={port}", code=2, env=self.env)
                self.assertIn(f"--metrics_port {port}: cannot listen on 127.0.0.1:{port}", err)
            self.assertFalse((self.folder / "model").exists())
        self.run_regatta("train", "-m", "config.yaml", "--metrics_port=70000", code=2)
        _, err = self.run_regatta("launch", "--server_num=1", "--worker_num=2", "--metrics_port=65534", "--", "train",
                                  "-m", "config.yaml", code=2)
        self.assertIn("above 65535", err)

    def test_alone(self):
        self.make_job(files=2, copies=400)
        alone = self.role("alone.log", "train", "-m", "config.yaml", "-o", "runner.epochs=1000", "--metrics_port=0")
        self.await_line("alone.log", "batch_id: 20,", alone)
        url = re.search(r"metrics: (\S+)", self.log("alone.log"))[1]
        metrics = parse(urllib.request.urlopen(url, timeout=5).read().decode())
        self.assertGreater(metrics['regatta_table_rows{table="embedding"}'], 100)
        self.assertGreaterEqual(metrics["regatta_worker_steps_total"], 20)
        self.assertNotIn("cluster", self.log("alone.log"))
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url.replace("/metrics", "/"), timeout=5)
        refused.exception.close()
        self.assertEqual(refused.exception.code, 404)
        alone.send_signal(signal.SIGTERM)
        self.ends(alone, 143, "alone.log", 20)

    @staticmethod
    def three_ports():
        while True:
            first = free_port()
            try:
                for port in range(first, first + 3):
                    with socket.socket() as probe:
                        probe.bind(("127.0.0.1", port))
                return first
            except (OSError, OverflowError):
                continue

    def test_launch_names_the_process_whose_port_is_taken(self):
        self.make_job(files=2)
        first = self.three_ports()
        with socket.create_server(("127.0.0.1", first + 2)):
            start = time.monotonic()
            _, err = self.run_regatta("launch", "--server_num=1", "--worker_num=2", f"--metrics_port={first}", "--",
                                      "train", "-m", "config.yaml", code=2, env=self.env)
        self.assertIn(f"--metrics_port {first + 2}: cannot listen", err)
        self.assertLess(time.monotonic() - start, 20)  # the worker that waits for the other one is stopped, not killed
        self.assertNotIn("killing", err)

    def test_launch_gives_every_process_a_port(self):
        self.make_job(files=2, copies=400)
        first = self.three_ports()
        launch = self.role("launch.log", "launch", "--server_num=1", "--worker_num=2", f"--metrics_port={first}", "--",
                           "train", "-m", "config.yaml", "-o", "runner.split_file_list=True", "-o",
                           "runner.epochs=1000")
        self.await_line("launch.log", "batch_id: 5,", launch)
        for place, name in enumerate(("regatta_server_uptime_seconds", "regatta_worker_steps_total",
                                      "regatta_worker_steps_total")):
            url = f"http://127.0.0.1:{first + place}/metrics"
            self.assertIn(url, self.log("launch.log"))
            self.assertIn(name, parse(urllib.request.urlopen(url, timeout=5).read().decode()))
        launch.send_signal(signal.SIGTERM)
        self.ends(launch, 143, "launch.log", 60)


class SomebodyElseTest(FleetJob):
    def test_a_port_where_something_else_answers_is_waited_for_and_named(self):
        self.make_job(files=1)
        self.prepare(1, 1, "-o", "runner.server_wait_timeout=4")

        class Web(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

        web = http.server.ThreadingHTTPServer((self.hosts[0], self.port), Web)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        self.addCleanup(web.server_close)
        self.addCleanup(web.shutdown)
        start = time.monotonic()
        self.ends(self.worker(0), 1, "w0.log")
        self.assertGreater(time.monotonic() - start, 3)
        log = self.log("w0.log")
        self.assertIn("server not ready, wait 3 sec to retry...", log)
        self.assertRegex(log.splitlines()[-1],
                         rf"at '{self.hosts[0]}:{self.port}' listens something that does not answer as a Regatta server")
        _, err = self.run_regatta("status", f"--servers={self.hosts[0]}:{self.port}", code=1, env=self.env)
        self.assertIn(f"{self.hosts[0]}:{self.port} does not answer", err)


if __name__ == "__main__":
    main()
