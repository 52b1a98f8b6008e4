"""A parameter server for a worker in this process, on another core where there is one; it ends with the worker."""
import ctypes
import os
import pathlib
import signal
import socket
import subprocess

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build" / "bin" / "regatta-pserver"


def start(cores):
    """Starts it on the first of the cores, and makes this process its worker."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])

    def prepare():
        os.sched_setaffinity(0, {min(cores)})
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # ends with this process

    subprocess.Popen([str(PROGRAM), f"--port={port}", "--ports_num=1", "--ports_num_for_sparse=0",
                      "--num_gradient_servers=1"], preexec_fn=prepare, env=os.environ | {"GLOG_minloglevel": "1"})
    os.environ.update(TRAINING_ROLE="TRAINER", PADDLE_PSERVERS_IP_PORT_LIST=f"127.0.0.1:{port}",
                      PADDLE_TRAINERS_NUM="1", PADDLE_TRAINER_ID="0")
