"""TLS and tokens between processes: what is let in trains as ever, what is not is told why at once, and no secret shows."""
import pathlib
import re
import resource
import signal
import socket
import ssl
import subprocess
import time
import urllib.request

from cluster import BIN, SLOW, FleetJob, main

NAMES = {"REGATTA_TOKEN_FILE": "token", "REGATTA_TLS_CERT": "tls.crt", "REGATTA_TLS_KEY": "tls.key",
         "REGATTA_TLS_CA": "ca.crt", "REGATTA_ADMIN_TOKEN_FILE": "admin_token"}
SYNC = ("-o", "runner.sync_mode=sync", "-o", "runner.split_file_list=True", "-o", "runner.server_wait_timeout=30")
TOLD_WITHIN = 15  # seconds; far below server_wait_timeout


class GuardedJob(FleetJob):
    def setUp(self):
        super().setUp()
        self.secrets = []

    def make_credentials(self, name, hosts=4):
        """The variables of a folder that `regatta credentials init` made."""
        words = [word for i in range(hosts) for word in ("--host", f"127.0.0.{11 + i}")]
        out, _ = self.run_regatta("credentials", "init", name, *words)
        variables = {variable: str(self.folder / name / file) for variable, file in NAMES.items()}
        for variable, path in variables.items():
            self.assertIn(f"export {variable}={path}", out)
        for file in ("token", "admin_token", "tls.key", "ca.key"):
            secret = (self.folder / name / file).read_text().strip()
            self.secrets.append(secret.splitlines()[1] if "BEGIN" in secret else secret)
            self.assertNotIn(self.secrets[-1], out)
        return variables

    def start_long_job(self, credentials):
        self.make_job(files=2)
        self.prepare(2, 2, *SYNC, "-o", "runner.epochs=1000", "--metrics_port=0")
        self.env.update(credentials | SLOW)
        self.processes = {"s0": self.server(0), "s1": self.server(1), "w0": self.worker(0), "w1": self.worker(1)}
        self.await_line("w0.log", "epoch: 0 done", self.processes["w0"])

    def stop_long_job(self):
        """It is still training."""
        done = self.log("w0.log").count("done, auc")
        self.await_line("w0.log", f"epoch: {done + 1} done", self.processes["w0"])
        self.processes["w0"].send_signal(signal.SIGTERM)
        self.ends(self.processes["w0"], 143, "w0.log", 30)
        self.ends(self.processes["w1"], 143, "w1.log", 30)
        for name in ("s0", "s1"):
            self.ends(self.processes[name], 0, f"{name}.log", 30)


class DoorsTest(GuardedJob):
    def train(self, name, credentials, *more):
        """A job of 2 servers and 2 workers to its end: the lines of its epochs and the dump of its last save."""
        self.prepare(2, 2, *SYNC, "-o", f"runner.model_save_path={name}", *more)
        self.env = {k: v for k, v in self.env.items() if k not in NAMES} | credentials
        processes = [self.server(0), self.server(1), self.worker(0), self.worker(1)]
        for process, log in zip(processes, ("s0.log", "s1.log", "w0.log", "w1.log")):
            self.ends(process, 0, log)
        auc = re.findall(r"epoch: \d+ done, auc: [\d.]+", self.log("w0.log"))
        self.assertEqual(len(auc), 2, self.log("w0.log"))
        return auc, self.dump(f"{name}/1")

    def test_a_guarded_job_learns_what_an_open_one_does(self):
        self.make_job(files=2)
        credentials = self.make_credentials("c")
        guarded = self.train("guarded", credentials)
        self.assertIn("access: TLS and a token, another for admins", self.log("s0.log"))
        self.assertEqual(guarded, self.train("open", {}))
        # One token is enough; the YAML and the flags name the files too.
        one = {k: v for k, v in credentials.items() if k != "REGATTA_ADMIN_TOKEN_FILE"}
        self.assertEqual(guarded, self.train("one", one))
        words = [f"--{flag}={credentials[name]}" for flag, name in
                 (("token_file", "REGATTA_TOKEN_FILE"), ("tls_cert", "REGATTA_TLS_CERT"))]
        words += [word for key, name in (("tls_key", "REGATTA_TLS_KEY"), ("tls_ca", "REGATTA_TLS_CA"))
                  for word in ("-o", f"runner.security.{key}={credentials[name]}")]
        self.assertEqual(guarded, self.train("words", {}, *words))
        self.assertIn("access: TLS and a token", self.log("s0.log"))

    def check_refused(self, name, says, remove=(), **env):
        """A worker and a status query with this environment end at once, with these words."""
        changed = {k: v for k, v in (self.env | env).items() if k not in remove}
        start = time.monotonic()
        worker = subprocess.run([BIN / "regatta", *self.args, "-o", f"runner.model_save_path={name}"], cwd=self.folder,
                                env=changed | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1"}, timeout=60,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(worker.returncode, 1, worker.stdout[-3000:])
        self.assertLess(time.monotonic() - start, TOLD_WITHIN, worker.stdout[-3000:])
        self.assertRegex(worker.stdout.splitlines()[-1], says)
        _, err = self.run_regatta("status", code=1, env=changed)
        self.assertRegex(err, says)
        for secret in self.secrets:
            self.assertNotIn(secret, worker.stdout + err)

    def test_who_does_not_fit_is_told_why_and_the_job_goes_on(self):
        ours, theirs = self.make_credentials("ours"), self.make_credentials("theirs")
        self.start_long_job(ours)
        tokens = ("REGATTA_TOKEN_FILE", "REGATTA_ADMIN_TOKEN_FILE")
        self.check_refused("token", "does not know this process's token", **{name: theirs[name] for name in tokens})
        self.check_refused("ca", r"does not hold before tls_ca, \S*theirs/ca.crt", **theirs)
        both = self.write("both.crt", (self.folder / "ours/ca.crt").read_text() + (self.folder / "theirs/ca.crt").read_text())
        self.check_refused("cert", r"refuses this process's certificate, \S*theirs/tls.crt",
                           **theirs | {"REGATTA_TLS_CA": str(both)})
        self.check_refused("plain", "wants TLS, and this process has no credentials", remove=NAMES)
        self.check_secrets_do_not_show()
        self.check_no_key_without_certificate()
        self.stop_long_job()
        self.assertRegex(self.log("s0.log"), r"refused a call from ipv4:127\.0\.0\.1:\d+: its token is not ours")

    def check_secrets_do_not_show(self):
        self.run_regatta("status", env=self.env)
        shown = subprocess.run(["ps", "-eww", "-o", "args"], stdout=subprocess.PIPE, text=True, check=True).stdout
        for process in self.processes.values():
            shown += pathlib.Path(f"/proc/{process.pid}/environ").read_bytes().decode()
        for name in self.processes:
            log = self.log(f"{name}.log")
            url = re.search(r"metrics: (http://\S+)", log)[1]
            shown += log + urllib.request.urlopen(url, timeout=5).read().decode()
        shown += self.run_regatta("status", "--json", env=self.env)[0]
        self.assertIn(str(self.folder / "ours/token"), shown)  # paths do
        for secret in self.secrets:
            self.assertGreater(len(secret), 30)
            self.assertNotIn(secret, shown)

    def check_no_key_without_certificate(self):
        """A stranger gets no further than the handshake."""
        context = ssl.create_default_context(cafile=self.folder / "ours/ca.crt")
        context.set_alpn_protocols(["h2"])
        for certificate, bytes_wanted in ((None, 0), ("ours", 1)):
            if certificate:
                context.load_cert_chain(self.folder / "ours/tls.crt", self.folder / "ours/tls.key")
            heard = b""
            with socket.create_connection((self.hosts[0], self.port), timeout=10) as plain:
                try:
                    with context.wrap_socket(plain, server_hostname=self.hosts[0]) as peer:
                        heard = peer.recv(1)  # gRPC speaks first, to those whom it lets in
                except (ssl.SSLError, ConnectionError):
                    pass
            self.assertEqual(len(heard), bytes_wanted)

    def test_credentials_against_an_open_server(self):
        self.start_long_job({})
        self.check_refused("tls", "does not speak TLS", **self.make_credentials("ours"))
        self.stop_long_job()

    def test_the_first_worker_needs_the_admins_token(self):
        self.make_job(files=2)
        credentials = self.make_credentials("c")
        self.prepare(1, 2, *SYNC, "-o", "runner.on_worker_loss=fail")
        self.env.update({k: v for k, v in credentials.items() if k != "REGATTA_ADMIN_TOKEN_FILE"})
        admin = {"REGATTA_ADMIN_TOKEN_FILE": credentials["REGATTA_ADMIN_TOKEN_FILE"]}
        server = self.role("s0.log", *self.args, TRAINING_ROLE="PSERVER", POD_IP=self.hosts[0],
                           PADDLE_PORT=str(self.port), **admin)
        first, second = self.worker(0), self.worker(1)
        self.ends(first, 1, "w0.log", TOLD_WITHIN)
        self.assertRegex(self.log("w0.log").splitlines()[-1], "worker 0 .* give it REGATTA_ADMIN_TOKEN_FILE")
        first = self.role("w0.log", *self.args, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="0", **admin)
        for process, log in ((first, "w0.log"), (second, "w1.log"), (server, "s0.log")):
            self.ends(process, 0, log)

    def test_launch_hands_credentials_to_every_process(self):
        self.make_job(files=2)
        c = self.make_credentials("c")
        for i, words in enumerate(((), ("--token_file=c/token", "--tls_cert=c/tls.crt", "--tls_key=c/tls.key", "--tls_ca=c/ca.crt"))):
            self.run_regatta("launch", "--server_num=1", "--worker_num=2", *words, "--", "train", "-m", "config.yaml",
                             *SYNC, "-o", f"runner.model_save_path=m{i}", env=self.env | ({} if words else c))
            self.assertIn("access: TLS and a token", self.log("log/serverlog.0"))

    def test_a_pserver_with_credentials_listens_on_every_address(self):
        self.env.update(self.make_credentials("c"))
        port = socket.create_server(("0.0.0.0", 0))
        number = port.getsockname()[1]
        port.close()
        server = self.role("p.log", "pserver", f"--port={number}", "--ports_num_for_sparse=0")
        self.await_line("p.log", f"Server listening on 0.0.0.0:{number}", server)
        self.run_regatta("status", f"--servers=127.0.0.11:{number},localhost:{number}", env=self.env)
        _, err = self.run_regatta("status", f"--servers=127.0.0.55:{number}", env=self.env, code=1)
        self.assertIn("--host 127.0.0.55", err)
        server.send_signal(signal.SIGTERM)
        self.ends(server, 143, "p.log", 10)

    def test_bad_credentials_are_exit_2_and_name_the_file(self):
        self.make_job(files=1)
        self.prepare(1, 1, *SYNC)
        good, other = self.make_credentials("c"), self.make_credentials("d")
        role = {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0"}
        server = {"TRAINING_ROLE": "PSERVER", "PADDLE_PSERVER_ID": "0"}
        (self.folder / "short").write_text("tooshort\n")
        (self.folder / "short").chmod(0o600)
        (self.folder / "open").write_text("x" * 64)
        (self.folder / "open").chmod(0o644)
        for change, says in (({"REGATTA_TLS_KEY": other["REGATTA_TLS_KEY"]}, "is not the key of"),
                             ({"REGATTA_TLS_CA": other["REGATTA_TLS_CA"]}, "is not signed by"),
                             ({"REGATTA_TLS_CA": ""}, "missing is tls_ca"),
                             ({"REGATTA_TOKEN_FILE": "nowhere"}, "nowhere"),
                             ({"REGATTA_TOKEN_FILE": "open"}, "chmod 600 open"),
                             ({"REGATTA_TOKEN_FILE": "short"}, "short holds no token")):
            for who in (role, server):
                _, err = self.run_regatta(*self.args, code=2, env=self.env | who | good | change)
                self.assertIn(says, err)
                self.assertNotIn("tooshort", err)


class FloodTest(GuardedJob):
    """Connections that say nothing, or not enough: the job goes on."""

    def flood(self, connections):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
        peers = []
        for i in range(connections):
            try:
                peers.append(socket.create_connection((self.hosts[i % 2], self.port), timeout=5))
            except OSError:
                break  # refused: the server may do that
        self.assertGreater(len(peers), connections // 2)
        return peers

    def test_silent_connections_are_dropped_and_the_job_goes_on(self):
        self.start_long_job(self.make_credentials("c"))
        peers = self.flood(1500)
        context = ssl.create_default_context(cafile=self.folder / "c/ca.crt")
        context.load_cert_chain(self.folder / "c/tls.crt", self.folder / "c/tls.key")
        context.set_alpn_protocols(["h2"])
        # A server closes the oldest when there are too many.
        for peer in peers[-100:]:  # these begin a handshake and stop in the middle of it
            peer.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        known = [context.wrap_socket(peer, server_hostname=self.hosts[0]) for peer in peers[-200:-100:2]]  # and say no more
        _, err = self.run_regatta("status", env=self.env)
        self.assertEqual(err, "")
        end = time.monotonic() + 40
        for peer in peers[:-200] + peers[-100:]:
            peer.settimeout(max(end - time.monotonic(), 0.1))
            try:
                while peer.recv(4096):
                    pass
            except ConnectionError:
                pass
            except TimeoutError:
                self.fail("a connection that says nothing is still open")
        self.stop_long_job()
        for peer in known + peers:
            peer.close()


if __name__ == "__main__":
    main()
