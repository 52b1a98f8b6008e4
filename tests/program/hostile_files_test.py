"""Files that somebody else made or planted: nothing waits for them, nothing follows them, nothing takes memory for what
they only claim; and what the programs make is for those whom it concerns."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import stat
import struct
import time
import unittest
import zipfile

from ports import free_port
from program import SAMPLE, SLOWNESS, SOURCE, ProgramTest, main

GOLDEN = SOURCE / "tests" / "data" / "checkpoint_v1"
FIFO = "is not a regular file (a FIFO)"
LINK = "is not a regular file (a symbolic link)"


def crc32c(data):
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def npy(dtype, shape):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


class HostileFilesTest(ProgramTest):
    def save(self, name="save"):
        return pathlib.Path(shutil.copytree(GOLDEN, self.folder / name))

    def fifo(self, name):
        path = self.folder / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        return path

    def precious(self):
        return self.write("precious", "precious")

    def assert_precious(self):
        self.assertEqual((self.folder / "precious").read_text(), "precious")

    def start_server(self, *args, **kwargs):
        """A `regatta pserver` that listens; what it has logged."""
        process = self.start("pserver", f"--port={free_port()}", *args, **kwargs)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "listening" in line:
                return process, "".join(lines)
        self.fail("".join(lines))

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60 * SLOWNESS)

    def test_a_fifo_is_refused_at_once(self):
        for name in ("MANIFEST", "data-000"):
            save = self.save(name)
            self.fifo(f"{name}/{name}")
            for verb in ("verify", "dump", "ls"):
                out, err = self.run_regatta("checkpoint", verb, save, code=0 if verb == "ls" else 1)
                self.assertIn(f"{name} {FIFO}", out + err)
        save = self.save()
        fifo = self.fifo("fifo")
        self.assertIn(FIFO, self.run_regatta("checkpoint", "import", fifo, "--like", save, "--out", "x", code=1)[1])
        for path in (fifo, "/dev/zero"):
            _, err = self.run_regatta("data", "check", path, code=1)
            self.assertIn("not a regular file", err)
        _, err = self.run_regatta("data", "split", fifo, "--count", "2", code=2)
        self.assertIn(FIFO, err)
        (self.folder / "root").mkdir()
        self.fifo("root/CURRENT")
        self.assertIn(FIFO, self.run_regatta("checkpoint", "verify", "root", code=1)[1])
        credentials = self.folder / "creds"
        self.run_regatta("credentials", "init", credentials)
        files = {"token_file": "token", "tls_cert": "tls.crt", "tls_key": "tls.key", "tls_ca": "ca.crt"}
        for planted in files:
            flags = [f"--{flag}={fifo if flag == planted else credentials / name}" for flag, name in files.items()]
            _, err = self.run_regatta("status", "--servers=127.0.0.1:1", *flags, code=2)
            self.assertIn(FIFO, err)

    def test_planted_links_are_not_followed(self):
        precious = self.precious()
        save = self.save()
        (self.folder / "w.npz.tmp").symlink_to(precious)
        self.run_regatta("checkpoint", "export", save, "w.npz")
        self.assertTrue(zipfile.is_zipfile(self.folder / "w.npz"))
        (self.folder / "copy.saving").symlink_to(self.folder)
        self.run_regatta("checkpoint", "import", "w.npz", "--like", save, "--out", "copy")
        self.assertFalse((self.folder / "copy").is_symlink())
        self.run_regatta("checkpoint", "diff", save, "copy")
        lines = self.write("lines.txt", SAMPLE.read_text())
        self.run_regatta("data", "split", lines, "--count", "2")
        pieces = sorted(p for p in self.folder.iterdir() if "lines" in p.name and p != lines)
        self.assertEqual(len(pieces), 2)
        for piece in pieces:
            piece.unlink()
            piece.symlink_to(precious)
            (self.folder / (piece.name + ".tmp")).symlink_to(precious)
        self.run_regatta("data", "split", lines, "--count", "2")
        self.assertFalse(any(piece.is_symlink() for piece in pieces))
        self.assert_precious()

    def test_a_launcher_follows_no_planted_log(self):
        precious = self.precious()
        for name in ("workerlog.0", "serverlog.0", ".lock"):
            logs = self.folder / f"logs{name}"
            logs.mkdir()
            (logs / name).symlink_to(precious)
            _, err = self.run_regatta("launch", "--server_num=1", "--worker_num=1", f"--log_dir={logs}", "/bin/true",
                                      code=1)
            self.assertIn(f"{name} {LINK}", err)
            self.assert_precious()
            (logs / name).unlink()
            os.mkfifo(logs / name)
            _, err = self.run_regatta("launch", "--server_num=1", "--worker_num=1", f"--log_dir={logs}", "/bin/true",
                                      code=1)
            self.assertIn(f"{name} {FIFO}", err)

    def test_a_launcher_removes_no_data_through_a_link(self):
        (self.folder / "elsewhere" / "server.0").mkdir(parents=True)
        (self.folder / "logs").mkdir()
        (self.folder / "logs" / "data").symlink_to(self.folder / "elsewhere")
        _, err = self.run_regatta("launch", "--server_num=1", "--worker_num=1", "--max_restarts=1",
                                  f"--log_dir={self.folder / 'logs'}", "/bin/true", code=1)
        self.assertIn("logs/data is not a folder (a symbolic link)", err)
        self.assertTrue((self.folder / "elsewhere" / "server.0").is_dir())

    def test_a_server_follows_no_planted_folder(self):
        """A term or a log that is a link: nothing behind it is read, written, removed or given another mode."""
        server, _ = self.start_server("--data_dir=other")
        self.end(server)
        other = self.folder / "other"
        (other / "term-1").chmod(0o755)

        def seen():
            return sorted((str(path), path.lstat().st_mode, path.lstat().st_mtime_ns) for path in other.rglob("*"))

        before = seen()
        for name, target in (("term-7", other / "term-1"), ("term-7/log", other / "term-1" / "log")):
            data = self.folder / f"data{name.count('/')}"
            (data / name).parent.mkdir(parents=True)
            (data / name).symlink_to(target)
            _, err = self.run_regatta("pserver", f"--port={free_port()}", f"--data_dir={data}", code=2)
            self.assertRegex(err, rf"{data}/term-[78]\S* is not a folder \(a symbolic link\): remove it")
            self.assertEqual(seen(), before)

    def test_a_data_dir_is_private_whatever_the_umask(self):
        (self.folder / "there" / "term-0").mkdir(parents=True)
        for path in (self.folder / "there", self.folder / "there" / "term-0"):
            path.chmod(0o777)
        for name in ("new/data", "there"):
            server, _ = self.start_server(f"--data_dir={name}", preexec_fn=lambda: os.umask(0))
            data = self.folder / name
            paths = [data, *data.rglob("*")]
            self.assertGreater(len(paths), 3)
            for path in paths:
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700 if path.is_dir() else 0o600, path)
            self.end(server)

    def test_saves_go_by_the_umask_and_secrets_do_not(self):
        save = self.save()
        self.run_regatta("checkpoint", "export", save, "w.npz")
        for umask in (0, 0o027):
            def set_umask(umask=umask):
                os.umask(umask)
            self.run_regatta("checkpoint", "import", "w.npz", "--like", save, "--out", f"made{umask}",
                             preexec_fn=set_umask)
            made = self.folder / f"made{umask}"
            self.assertEqual(stat.S_IMODE(made.stat().st_mode), 0o777 & ~umask)
            self.assertEqual(stat.S_IMODE((made / "MANIFEST").stat().st_mode), 0o666 & ~umask)
            self.run_regatta("credentials", "init", f"creds{umask}", preexec_fn=set_umask)
            credentials = self.folder / f"creds{umask}"
            self.assertEqual(stat.S_IMODE(credentials.stat().st_mode), 0o700)
            for name in ("token", "admin_token", "tls.key", "ca.key"):
                self.assertEqual(stat.S_IMODE((credentials / name).stat().st_mode), 0o600, name)

    def peak_of(self, *args):
        """Exit code, stderr and the peak of memory in bytes of a `regatta`."""
        process = self.start(*args)
        with process.stderr as err, process.stdout:
            err = err.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, err, usage.ru_maxrss * 1024

    def test_an_npz_takes_no_memory_for_what_it_claims(self):
        save = self.save()
        tables = json.loads((save / "MANIFEST").read_text())["sparse"]
        name = tables[0]["config"]["name"]
        keys = 125_000_000
        with zipfile.ZipFile(self.folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            with archive.open(f"{name}.keys.npy", "w") as member:
                member.write(npy("<u8", f"({keys},)"))
                for _ in range(keys * 8 // 10_000_000):
                    member.write(bytes(10_000_000))
        self.assertLess((self.folder / "bomb.npz").stat().st_size, 1_200_000)
        code, err, peak = self.peak_of("checkpoint", "import", "bomb.npz", "--like", save, "--out", "x")
        self.assertEqual(code, 1, err)
        self.assertIn("they cannot all differ", err)
        self.assertLess(peak, (256 << 20) * (4 if SLOWNESS > 1 else 1))
        # Noise that claims to be two gigabytes, deflated.
        with zipfile.ZipFile(self.folder / "claim.npz", "w") as archive:
            archive.writestr(f"{name}.keys.npy", npy("<u8", "(250000000,)") + bytes(range(1, 256)) * 8_600)
        claim = bytearray((self.folder / "claim.npz").read_bytes())
        at = claim.rindex(b"PK\x01\x02")
        struct.pack_into("<H", claim, at + 10, zipfile.ZIP_DEFLATED)
        struct.pack_into("<I", claim, at + 24, 2_000_000_000)
        (self.folder / "claim.npz").write_bytes(claim)
        code, err, peak = self.peak_of("checkpoint", "import", "claim.npz", "--like", save, "--out", "x")
        self.assertEqual(code, 1, err)
        self.assertLess(peak, (256 << 20) * (4 if SLOWNESS > 1 else 1))
        # A file with a hole as large as what it claims.
        with open(self.folder / "sparse.npz", "wb") as sparse:
            sparse.truncate(1 << 42)
        code, err, peak = self.peak_of("checkpoint", "import", "sparse.npz", "--like", save, "--out", "x")
        self.assertEqual(code, 1, err)
        self.assertLess(peak, (256 << 20) * (4 if SLOWNESS > 1 else 1))

    def test_a_manifest_of_many_keys_is_read_in_linear_time(self):
        save = self.save()
        text = (save / "MANIFEST").read_bytes()
        body = text[: text.rindex(b'"crc32c"')]
        keys = b"".join(b'"field%d": %d,\n' % (i, i) for i in range(300_000))
        body = b"{" + keys + body[1:]
        (save / "MANIFEST").write_bytes(body + b'"crc32c": "%08x"}\n' % crc32c(body))
        out, _ = self.run_regatta("checkpoint", "verify", save)
        self.assertIn("whole", out)

    def test_names_in_a_save_do_not_reach_the_terminal_raw(self):
        save = self.save("evil\x1b[2J\nsave")
        (save / "data-000").write_bytes(b"")
        out, err = self.run_regatta("checkpoint", "verify", save, code=1)
        self.assertNotIn("\x1b", out + err)
        self.assertIn("evil\\x1b[2J\\nsave", out)
        _, err = self.run_regatta("checkpoint", "dump", "nowhere\x1b[2J", code=1)
        self.assertNotIn("\x1b", err)
        self.assertIn("nowhere\\x1b[2J", err)

    @unittest.skipIf(SLOWNESS > 1, "a sanitizer needs descriptors to look at memory")
    def test_a_server_with_few_descriptors_listens_on_and_opens_its_files(self):
        """gRPC 1.51 stops listening for good without one (CVE-2023-4785)."""
        few = (80, 80)
        server, log = self.start_server(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few))
        host, port = re.search(r"listening on (127[0-9.]+):(\d+)", log).groups()
        peers = [socket.create_connection((host, int(port)), timeout=60) for _ in range(200)]
        # Whoever comes while the flood is being dealt with may be closed with it, and tries again.
        end, answered = time.monotonic() + 60 * SLOWNESS, False
        while not answered and time.monotonic() < end:
            status = self.start("status", f"--servers={host}:{port}")
            answered = port in status.communicate(timeout=60 * SLOWNESS)[0] and status.returncode == 0
        self.assertTrue(answered)
        self.assertLess(len(os.listdir(f"/proc/{server.pid}/fd")), 64, "some are left for its own files")
        for peer in peers:
            peer.close()
        out, _ = self.run_regatta("status", f"--servers={host}:{port}", "--timeout=60")
        self.assertIn(port, out)
        self.end(server)

    def test_metrics_are_served_while_many_connections_are_idle(self):
        server, log = self.start_server("--metrics_port=0")
        port = int(log.split("http://127.0.0.1:")[1].split("/")[0])
        idle = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(100)]
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as asking:
                asking.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
                self.assertTrue(asking.recv(15).startswith(b"HTTP/1.1 200 OK"))
        # Nobody's time ran out: most of them are still open.
        still = 0
        for connection in idle:
            connection.setblocking(False)
            try:
                connection.recv(1)
            except BlockingIOError:
                still += 1
            connection.close()
        self.assertGreater(still, 30)
        self.end(server)

    def test_a_process_with_credentials_leaves_no_core_dump(self):
        credentials = self.folder / "creds"
        self.run_regatta("credentials", "init", credentials)
        flags = [f"--{flag}={credentials / name}" for flag, name in
                 (("token_file", "token"), ("tls_cert", "tls.crt"), ("tls_key", "tls.key"), ("tls_ca", "ca.crt"))]
        user, as_user = os.geteuid(), {}
        if user == 0:  # not as root, whom the kernel lets see everything
            user = 65534
            as_user = {"user": user, "group": user, "extra_groups": []}
            for path in (self.folder, credentials, *credentials.iterdir()):
                os.chown(path, user, user)
        for variables, owner in (({}, 0), ({"REGATTA_CORE_DUMPS": "1"}, user)):
            server, _ = self.start_server("--host=127.0.0.1", *flags, env={**os.environ, **variables}, **as_user)
            # What the kernel tells of a process that is not to be dumped belongs to root.
            self.assertEqual(os.stat(f"/proc/{server.pid}/environ").st_uid, owner)
            self.end(server)
        _, err = self.run_regatta("status", "--servers=127.0.0.1:1", *flags, code=2,
                                  env={**os.environ, "REGATTA_CORE_DUMPS": "maybe"})
        self.assertIn("REGATTA_CORE_DUMPS", err)

    def test_a_link_that_leads_to_itself_is_an_error(self):
        config = self.make_job(copies=1)
        loop = self.folder / "train" / "loop.txt"
        loop.symlink_to(loop)
        wanted = "loop.txt: Too many levels of symbolic links"
        for path in ("train", "train/*", "train/loop.txt"):
            _, err = self.run_regatta("train", "-m", config, "-o", f"runner.train_data_dir={path}", code=1)
            self.assertIn(wanted, err)
        _, err = self.run_regatta("data", "check", "train", code=1)
        self.assertIn(wanted, err)


if __name__ == "__main__":
    main()
