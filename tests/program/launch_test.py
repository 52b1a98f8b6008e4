"""`regatta launch` and `fleetrun` with small children: what they are told, what is shown, and that nothing is left.

Every process of a test carries the test's mark in its environment, so that what is left behind is found in /proc.
"""
import os
import pathlib
import signal
import socket
import subprocess
import time
import uuid

from program import BIN, SLOWNESS, ProgramTest, main

PATIENCE = 20 * SLOWNESS  # seconds; a bound, not a pause


class LaunchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.mark = f"REGATTA_TEST_MARK={uuid.uuid4()}"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PADDLE_")}
        self.env.update([self.mark.split("=")])
        self.addCleanup(self.end_what_is_left)

    def script(self, name, text):
        path = self.write(name, "#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def launch(self, *args, program="launch", **kwargs):
        command = [BIN / "regatta", "launch"] if program == "launch" else [BIN / program]
        process = subprocess.Popen([*command, *map(str, args)], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                   env={**self.env, **kwargs.pop("env", {})}, **kwargs)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def finish(self, process, code):
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, code, f"{out}\n{err}")
        self.assertEqual(self.marked(), [], "processes are left")
        return out, err

    def run_launch(self, *args, code=0, **kwargs):
        return self.finish(self.launch(*args, **kwargs), code)

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited in vain for {what}")
            time.sleep(0.005)

    def wait_for_files(self, *names):
        self.wait_for(lambda: all((self.folder / n).exists() for n in names), f"{names}")

    def marked(self):
        """Living processes that carry the test's mark."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
            except OSError:
                pass
        return found

    def end_what_is_left(self):
        for pid in self.marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def variables(self, log):
        return dict(line.split("=", 1) for line in (self.folder / log).read_text().splitlines() if "=" in line)

    # What a process is told

    def test_the_status_command_is_printed(self):
        _, err = self.run_launch("--server_num=2", "--worker_num=1", "--", self.script("child", "exit 0\n"))
        self.assertRegex(err, r"look at it with: regatta status --servers=127\.0\.0\.1:\d+,127\.0\.0\.1:\d+\n")

    def test_every_process_is_told_its_place(self):
        out, _ = self.run_launch("--server_num=2", "--worker_num=3", "--", "env", env={
            "PADDLE_TRAINERS": "9", "PADDLE_TRAINING_ROLE": "PSERVER", "JOB_COMPLETION_INDEX": "7", "POD_IP": "10.9.9.9",
            "PADDLE_TRAINER_ENDPOINTS": "1.2.3.4:5", "PADDLE_CURRENT_ENDPOINT": "1.2.3.4:5", "OTHER": "kept"})
        servers = [self.variables(f"log/serverlog.{i}") for i in range(2)]
        workers = [self.variables(f"log/workerlog.{i}") for i in range(3)]
        endpoints = servers[0]["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
        self.assertEqual(len(set(endpoints)), 2)
        for i, process in enumerate(servers + workers):
            self.assertEqual(process["PADDLE_PSERVERS_IP_PORT_LIST"], ",".join(endpoints))
            self.assertEqual(process["PADDLE_TRAINERS_NUM"], "3")
            self.assertEqual(process["OTHER"], "kept")
            self.assertEqual(process["TRAINING_ROLE"], "PSERVER" if i < 2 else "TRAINER")
            for name in ("PADDLE_TRAINERS", "PADDLE_TRAINING_ROLE", "JOB_COMPLETION_INDEX", "PADDLE_CURRENT_ENDPOINT"):
                self.assertNotIn(name, process)
        for i, process in enumerate(servers):
            self.assertEqual(f"{process['POD_IP']}:{process['PADDLE_PORT']}", endpoints[i])
            self.assertTrue(endpoints[i].startswith("127.0.0.1:"))
        self.assertEqual([w["PADDLE_TRAINER_ID"] for w in workers], ["0", "1", "2"])
        self.assertIn("PADDLE_TRAINER_ID=0\n", out)  # worker 0 is shown, the others are not
        self.assertNotIn("PADDLE_TRAINER_ID=1\n", out)
        self.assertNotIn("TRAINING_ROLE=PSERVER\n", out)

    def test_servers_can_listen_on_the_ports_they_are_given(self):
        listen = self.write("listen.py", "import os, socket\n"
                            "if os.environ['TRAINING_ROLE'] == 'PSERVER':\n"
                            "    s = socket.socket()\n"
                            "    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do\n"
                            "    s.bind((os.environ['POD_IP'], int(os.environ['PADDLE_PORT'])))\n"
                            "    s.listen()\n")
        taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(20)]
        for s in taken:
            self.addCleanup(s.close)
        self.run_launch("--server_num=8", "--worker_num=1", listen)

    def test_nodes_start_their_own_part_of_the_lists(self):
        lists = ("--workers=127.0.0.11:36100,127.0.0.12:36100", "--servers=127.0.0.11:36200,127.0.0.12:36200", "--", "env")
        self.run_launch(*lists, env={"POD_IP": "127.0.0.11"})
        self.assertEqual(sorted(p.name for p in (self.folder / "log").glob("*log.*")), ["serverlog.0", "workerlog.0"])
        self.run_launch("--log_dir=log2", *lists, env={"POD_IP": "127.0.0.12"})
        self.assertEqual(sorted(p.name for p in (self.folder / "log2").glob("*log.*")), ["serverlog.1", "workerlog.1"])
        server, worker = self.variables("log2/serverlog.1"), self.variables("log2/workerlog.1")
        self.assertEqual((server["POD_IP"], server["PADDLE_PORT"]), ("127.0.0.12", "36200"))
        self.assertEqual(worker["PADDLE_TRAINER_ID"], "1")
        self.assertEqual(worker["PADDLE_PSERVERS_IP_PORT_LIST"], "127.0.0.11:36200,127.0.0.12:36200")
        _, err = self.run_launch(*lists, env={"POD_IP": "127.0.0.13"}, code=2)
        self.assertIn("127.0.0.13", err)

    def test_addresses_of_other_machines_need_insecure(self):
        lists = ("--workers=10.255.255.1:1", "--servers=10.255.255.1:2")
        _, err = self.run_launch(*lists, "--", "env", env={"POD_IP": "10.255.255.1"}, code=2)
        self.assertIn("--insecure", err)
        self.run_launch(*lists, "--insecure", "--", "env", env={"POD_IP": "10.255.255.1"})
        self.assertEqual(self.variables("log/serverlog.0")["REGATTA_INSECURE"], "1")

    # How a job ends

    def test_a_process_that_fails_is_named_with_its_last_lines_and_its_code(self):
        child = self.script("child", 'if [ "$PADDLE_TRAINER_ID" = 1 ]; then\n'
                            "  for i in $(seq 30); do echo line $i; done; echo the reason >&2; exit 3\nfi\nexec sleep 60\n")
        out, err = self.run_launch("--server_num=1", "--worker_num=2", "--", child, code=3)
        self.assertRegex(err, r"worker 1 \(pid \d+\) exited with code 3; the last lines of log/workerlog.1:")
        self.assertIn("  | line 30\n  | the reason\n", err)
        self.assertNotIn("line 10\n", err)
        self.assertRegex(err, r"ending server 0 \(pid \d+\), worker 0 \(pid \d+\)")

    def test_a_signal_that_kills_a_process_is_named(self):
        child = self.script("child", '[ "$TRAINING_ROLE" = PSERVER ] && kill -SEGV $$\nexec sleep 60\n')
        _, err = self.run_launch("--server_num=1", "--worker_num=1", "--", child, code=128 + signal.SIGSEGV)
        self.assertRegex(err, r"server 0 \(pid \d+\) was killed by signal 11 \(SIGSEGV\); its log log/serverlog.0 is empty")

    def test_the_exit_code_is_that_of_the_first_failure(self):
        child = self.script("child", '[ "$PADDLE_TRAINER_ID" = 1 ] && exit 5\n'
                            "trap 'exit 6' TERM\ntouch ready.$$; while :; do sleep 0.01; done\n")
        self.run_launch("--server_num=1", "--worker_num=2", "--", child, code=5)

    def test_servers_end_by_themselves_after_the_workers(self):
        child = self.script("child", '[ "$TRAINING_ROLE" = TRAINER ] && { touch worked; exit 0; }\n'
                            "while [ ! -e worked ]; do sleep 0.01; done; sleep 0.2; echo saved\n")
        self.run_launch("--server_num=2", "--worker_num=1", "--", child)
        self.assertEqual((self.folder / "log/serverlog.1").read_text(), "saved\n")

    def test_servers_that_outlive_the_workers_are_ended(self):
        child = self.script("child", '[ "$TRAINING_ROLE" = TRAINER ] && exit 0\nexec sleep 60\n')
        _, err = self.run_launch("--server_num=1", "--worker_num=1", "--grace=0.3", "--", child)
        self.assertRegex(err, r"the workers ended well 0.3 s ago; ending server 0")

    def test_servers_of_a_node_wait_for_workers_elsewhere(self):
        child = self.script("child", '[ "$TRAINING_ROLE" = TRAINER ] && exit 0\ntouch up\n'
                            "while [ ! -e end ]; do sleep 0.01; done; echo ended by itself\n")
        process = self.launch("--servers=127.0.0.11:1", "--workers=127.0.0.11:2,127.0.0.12:2", "--grace=0.1", "--", child,
                              env={"POD_IP": "127.0.0.11"})
        self.wait_for_files("up", "log/workerlog.0")
        time.sleep(0.5)  # longer than the grace time
        self.assertIsNone(process.poll())
        self.write("end", "")
        self.finish(process, 0)
        self.assertEqual((self.folder / "log/serverlog.0").read_text(), "ended by itself\n")

    # Signals

    def stubborn(self):
        """Ignores SIGTERM, as does its child; both say when they are ready."""
        return self.script("stubborn", "trap '' TERM INT HUP\n"
                           "setsid sh -c 'touch child.$TRAINING_ROLE; exec sleep 60' &\n"
                           "touch ready.$TRAINING_ROLE; while :; do sleep 0.01; done\n")

    def start_and_wait(self, child, *args):
        process = self.launch("--server_num=1", "--worker_num=1", *args, "--", child)
        self.wait_for_files("ready.PSERVER", "ready.TRAINER")
        return process

    def test_a_signal_lets_workers_save_before_servers_end(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for path in self.folder.glob("ready*"):
                path.unlink()
            child = self.script("child", "trap 'echo $TRAINING_ROLE >> order; exit 1' TERM\n"
                                "touch ready.$TRAINING_ROLE; while :; do sleep 0.01; done\n")
            process = self.start_and_wait(child)
            process.send_signal(number)
            _, err = self.finish(process, 128 + number)
            self.assertIn("stopping server 0", err)
            self.assertEqual((self.folder / "order").read_text(), "TRAINER\nPSERVER\n")
            (self.folder / "order").unlink()

    def test_who_does_not_end_in_time_is_killed(self):
        process = self.start_and_wait(self.stubborn(), "--grace=0.2")
        process.send_signal(signal.SIGTERM)
        _, err = self.finish(process, 128 + signal.SIGTERM)
        self.assertRegex(err, r"killing worker 0 \(pid \d+\), not ended in 0.2 s")
        self.assertRegex(err, r"killing server 0 \(pid \d+\), not ended in 0.2 s")

    def test_a_second_ctrl_c_kills_at_once(self):
        process = self.start_and_wait(self.stubborn(), "--grace=1000")
        process.send_signal(signal.SIGINT)
        self.assertIn("stopping", self.read_error_until(process, "Once more"))
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.finish(process, 128 + signal.SIGINT)
        self.assertLess(time.monotonic() - start, 10)

    def read_error_until(self, process, text):
        lines = ""
        for line in process.stderr:
            lines += line
            if text in line:
                return lines
        self.fail(f"'{text}' was never said: {lines}")

    def test_killing_the_launcher_ends_children_and_grandchildren(self):
        process = self.start_and_wait(self.stubborn())
        self.wait_for_files("child.PSERVER", "child.TRAINER")
        process.kill()
        process.wait(timeout=PATIENCE)
        self.wait_for(lambda: not self.marked(), "the job's end")

    def test_ctrl_c_reaches_the_launcher_only(self):
        """The children are in groups of their own: a Ctrl+C at the terminal does not take their servers away."""
        child = self.script("child", "touch ready.$TRAINING_ROLE; ps -o pgid= -p $$ > group.$TRAINING_ROLE; exec sleep 60\n")
        process = self.start_and_wait(child)
        self.wait_for(lambda: all((self.folder / f"group.{r}").exists() and (self.folder / f"group.{r}").read_text().strip()
                                  for r in ("PSERVER", "TRAINER")), "groups")
        groups = {int((self.folder / f"group.{r}").read_text()) for r in ("PSERVER", "TRAINER")}
        self.assertEqual(len(groups | {os.getpgid(process.pid)}), 3)
        process.terminate()
        self.finish(process, 128 + signal.SIGTERM)

    def test_what_a_process_leaves_running_is_ended_too(self):
        child = self.script("child", "setsid sleep 60 > /dev/null 2>&1 &\nexit 0\n")
        _, err = self.run_launch("--server_num=1", "--worker_num=1", "--grace=0.3", "--", child)
        self.assertIn("that the job had left behind", err)

    def test_thirty_launches_in_a_row_leave_nothing(self):
        for _ in range(30):
            self.run_launch("--server_num=2", "--worker_num=2", "--", "true")

    # Logs and the terminal

    def test_worker_0_is_shown_as_it_goes(self):
        child = self.script("child", 'echo "$TRAINING_ROLE $PADDLE_TRAINER_ID out"; echo "$TRAINING_ROLE err" >&2\n'
                            '[ "$TRAINING_ROLE" = PSERVER ] && exit 0\nwhile [ ! -e go ]; do sleep 0.01; done\necho last\n')
        process = self.launch("--server_num=1", "--worker_num=2", "--", child)
        self.assertEqual(process.stdout.readline(), "TRAINER 0 out\n")  # before the job is over
        self.assertEqual(process.stdout.readline(), "TRAINER err\n")
        self.write("go", "")
        out, err = self.finish(process, 0)
        self.assertEqual(out, "last\n")
        self.assertEqual((self.folder / "log/workerlog.1").read_text(), "TRAINER 1 out\nTRAINER err\nlast\n")
        self.assertEqual((self.folder / "log/serverlog.0").read_text(), "PSERVER  out\nPSERVER err\n")
        self.assertRegex(err, r"worker 1: pid \d+, log/workerlog.1")

    def test_a_log_of_megabytes_is_shown_whole(self):
        child = self.script("child", '[ "$TRAINING_ROLE" = PSERVER ] || seq 300000\n')
        out, _ = self.run_launch("--server_num=1", "--worker_num=1", "--", child)
        self.assertEqual(out, (self.folder / "log/workerlog.0").read_text())
        self.assertTrue(out.endswith("\n300000\n"))

    def test_a_reader_that_goes_away_does_not_end_the_job(self):
        child = self.script("child", '[ "$TRAINING_ROLE" = PSERVER ] || seq 300000\n')
        process = self.launch("--server_num=1", "--worker_num=1", "--", child)
        process.stdout.close()
        self.assertEqual(process.wait(timeout=PATIENCE), 0)
        self.assertTrue((self.folder / "log/workerlog.0").read_text().endswith("\n300000\n"))

    def test_a_reader_that_stops_reading_does_not_stop_the_job_or_its_end(self):
        child = self.script("child", '[ "$TRAINING_ROLE" = PSERVER ] || { seq 300000; touch written; }\nexec sleep 60\n')
        process = self.launch("--server_num=1", "--worker_num=1", "--", child)
        self.wait_for_files("written")
        process.terminate()
        self.assertEqual(process.wait(timeout=PATIENCE), 128 + signal.SIGTERM)  # nobody read a byte
        self.assertEqual(self.marked(), [])

    def test_a_process_that_was_told_to_stop_is_not_started_again(self):
        """As a Python program that Ctrl+C ended: it dies of the signal itself."""
        for name, code in (("INT", 130), ("TERM", 143), ("HUP", 129)):
            with self.subTest(name):
                child = self.script("child", f'[ "$TRAINING_ROLE" = PSERVER ] && exec sleep 60\necho once >> ran.{name}; '
                                    f'trap - {name}; kill -{name} $$\n')
                process = self.launch("--max_restarts=3", "--server_num=1", "--worker_num=1", "--", child)
                _, err = self.finish(process, code)
                self.assertIn(f"was stopped by signal {code - 128} (SIG{name})", err)
                self.assertNotIn("started again", err)
                self.assertEqual((self.folder / f"ran.{name}").read_text(), "once\n")

    def test_a_folder_of_logs_belongs_to_one_job_at_a_time(self):
        child = self.script("child", 'echo first\n[ "$TRAINING_ROLE" = PSERVER ] && { mkdir -p "$REGATTA_DATA_DIR"; '
                            'touch "$REGATTA_DATA_DIR/kept"; }\ntouch ready.$TRAINING_ROLE; exec sleep 60\n')
        job = ("--max_restarts=1", "--server_num=1", "--worker_num=1", "--")
        first = self.launch(*job, child)
        self.wait_for_files("ready.PSERVER", "ready.TRAINER")
        (self.folder / "link").symlink_to("log")
        for folder in ("log", "link"):
            second = self.launch(f"--log_dir={folder}", *job, "true")
            _, err = second.communicate(timeout=PATIENCE)
            self.assertEqual(second.returncode, 2, err)
            self.assertIn(f"the folder {folder} belongs to a job that runs: its launcher (pid {first.pid})", err)
            self.assertIn("--log_dir", err)
        self.assertTrue((self.folder / "log/data/server.0/kept").exists())
        self.assertEqual((self.folder / "log/workerlog.0").read_text(), "first\n")
        other = self.launch("--log_dir=other", *job, "true")
        other.communicate(timeout=PATIENCE)
        self.assertEqual(other.returncode, 0)
        first.kill()  # -9: it gives nothing back by itself
        first.wait(timeout=PATIENCE)
        self.wait_for(lambda: not self.marked(), "the job's end")
        self.run_launch(*job, "true")
        self.assertFalse((self.folder / "log/data/server.0").exists())

    def test_nodes_of_one_job_may_share_a_folder_of_logs(self):
        child = self.script("child", "touch ready.$TRAINING_ROLE; while [ ! -e end ]; do sleep 0.01; done\n")
        lists = ("--workers=127.0.0.11:1,127.0.0.12:1", "--servers=127.0.0.11:2,127.0.0.12:2", "--", child)
        one = self.launch(*lists, env={"POD_IP": "127.0.0.11"})
        self.wait_for_files("ready.PSERVER", "ready.TRAINER")
        two = self.launch(*lists, env={"POD_IP": "127.0.0.12"})
        self.wait_for_files("log/serverlog.1", "log/workerlog.1")
        again = self.launch(*lists, env={"POD_IP": "127.0.0.12"})
        _, err = again.communicate(timeout=PATIENCE)
        self.assertEqual(again.returncode, 2, err)
        self.assertIn(f"(pid {two.pid}) writes log/serverlog.1", err)
        self.write("end", "")
        for process in (one, two):
            process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0)

    # Words

    def test_wrong_usage_is_exit_2_and_starts_nothing(self):
        for args, word in ((("--server_num=1", "--", "true"), "--worker_num"),
                           (("--server_num=1", "--worker_num=1"), "nothing to run"),
                           (("--server_num=1", "--worker_num=1", "--", "no_such_program"), "no_such_program"),
                           (("--server_num=1", "--worker_num=1", "no_such.py"), "no_such.py"),
                           (("--max_restarts=-1", "--server_num=1", "--worker_num=1", "true"), "--max_restarts"),
                           (("--server_num=1", "--worker_num=1", "--", "infer", "-m", "c.yaml"), "regatta infer"),
                           (("--server_num=1", "--worker_num=1", "--", "pserver"), "regatta pserver"),
                           (("--hosts=a,b", "--", "train"), "not available yet"),
                           (("--collective", "--", "train"), "not available yet")):
            for program in ("launch", "fleetrun"):
                _, err = self.run_launch(*args, code=2, program=program)
                self.assertIn(word, err)
                self.assertFalse((self.folder / "log").exists())
        _, err = self.run_launch("--server_num=1", "--worker_num=1", "--", "true", code=2, env={"REGATTA_TLS_KEY": "k"})
        self.assertIn("REGATTA_TLS_CERT", err)

    def test_fleetrun_runs_scripts(self):
        self.write("train.py", "import os, sys\nprint(sys.argv[1:], os.environ['TRAINING_ROLE'])\n")
        out, _ = self.run_launch("--worker_num=1", "--server_num=1", "train.py", "-m", "c.yaml", "--x", program="fleetrun")
        self.assertEqual(out, "['-m', 'c.yaml', '--x'] TRAINER\n")
        self.assertEqual((self.folder / "log/serverlog.0").read_text(), "['-m', 'c.yaml', '--x'] PSERVER\n")

    def test_a_launcher_inside_a_job_ends_with_it(self):
        inner = self.script("inner", "trap '' TERM\ntouch ready.$TRAINING_ROLE\nsetsid sleep 60 &\nwhile :; do sleep 0.01; done\n")
        child = self.script("child", f'[ "$TRAINING_ROLE" = PSERVER ] && exit 0\n'
                            f'exec "{BIN}/regatta" launch --log_dir=inner.log --server_num=1 --worker_num=1 -- {inner}\n')
        process = self.launch("--server_num=1", "--worker_num=1", "--grace=0.3", "--", child)
        self.wait_for_files("ready.PSERVER", "ready.TRAINER")
        process.terminate()
        self.finish(process, 128 + signal.SIGTERM)


if __name__ == "__main__":
    main()
