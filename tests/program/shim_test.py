"""The file names that PaddleRec users type: tools/*.py and tools/run_gpubox.sh become `regatta train`."""
import os
import shutil
import subprocess

from program import BIN, SOURCE, ProgramTest, main

SHIMS = ("trainer.py", "static_trainer.py", "static_ps_trainer.py", "static_gpubox_trainer.py")
FAKE = '#!/bin/sh\necho "{name} $TRAINING_ROLE"\nfor a in "$@"; do echo "<$a>"; done\nexit {code}\n'


class ShimTest(ProgramTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(SOURCE / "tools", self.folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        (self.folder / "elsewhere").mkdir()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PADDLE_") and k != "TRAINING_ROLE"}

    def fake(self, path, code=7):
        self.write(path, FAKE.format(name=path, code=code)).chmod(0o755)

    def run_command(self, *command, cwd="elsewhere", code=7):
        done = subprocess.run(list(map(str, command)), cwd=self.folder / cwd, env=self.env, capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_every_shim_becomes_the_built_regatta(self):
        self.fake("build/bin/regatta")
        self.fake("path/regatta")
        self.env["PATH"] = f"{self.folder}/path:{self.env['PATH']}"
        for shim in SHIMS:
            out = self.run_command("/usr/bin/python3", "-B", self.folder / "tools" / shim, "-m", "a b.yaml", "-o", "k=v")
            self.assertEqual(out, "build/bin/regatta \n<train>\n<-m>\n<a b.yaml>\n<-o>\n<k=v>\n")

    def test_without_a_build_the_one_in_path_is_taken(self):
        self.fake("path/regatta")
        shim = ("/usr/bin/python3", "-B", self.folder / "tools" / "trainer.py", "-m", "c.yaml")
        path = self.env["PATH"]
        self.env["PATH"] = f"{self.folder}/path:{path}"
        self.assertIn("path/regatta", self.run_command(*shim))
        self.env["PATH"] = "/nonexistent"
        self.assertIn("scripts/demo", self.run_command(*shim, code=1))

    def test_run_gpubox_runs_from_any_directory(self):
        self.fake("build/bin/regatta")
        out = self.run_command("sh", "../tools/run_gpubox.sh", "-o", "runner.epochs=1")
        self.assertIn(f"<-m>\n<{self.folder}/tools/../models/rank/dnn/config_gpubox.yaml>\n<-o>\n<runner.epochs=1>\n", out)

    def test_fleetrun_runs_them_as_typed_from_the_root(self):
        self.fake("build/bin/regatta", code=0)
        out = self.run_command(BIN / "fleetrun", "--worker_num=1", "--server_num=1", "tools/static_ps_trainer.py", "-m",
                               "models/rank/dnn/config.yaml", cwd=".", code=0)
        self.assertIn("build/bin/regatta TRAINER\n<train>\n<-m>\n<models/rank/dnn/config.yaml>\n", out)
        self.assertIn("regatta PSERVER\n<train>\n", (self.folder / "log/serverlog.0").read_text())


if __name__ == "__main__":
    main()
