"""CTR-DNN on Paddle's parameter server, async, one server and one worker of one thread: 26 slots, dim 10, 400-400-400,
batch 1000, Adam. From the slot text through a reader in Python, as its documents have it, or from MultiSlot text made
beforehand, through `cat`.
Usage: paddle_server_ctr_dnn.py text|multislot PATH     (PATH.txt by regatta_rounds write; see rounds.py)"""
import ctypes
import os
import socket
import subprocess
import sys

import rounds

rounds.one_thread()
import data  # noqa: E402

DIM, RATE = 10, 1e-4


def build():
    """The inputs in the order of a line, and the loss."""
    import paddle
    from paddle import static

    label = static.data("label", [None, 1], "int64", lod_level=0)
    dense = static.data("dense", [None, data.DENSE], "float32")
    slots = [static.data(f"slot{i}", [None, 1], "int64", lod_level=1) for i in range(data.SLOTS)]
    rows = [
        static.nn.sequence_lod.sequence_pool(
            static.nn.sparse_embedding(slot, [rounds.ROWS, DIM], param_attr=paddle.ParamAttr(
                name="embedding", initializer=paddle.nn.initializer.Uniform(-0.05, 0.05))), "sum")
        for slot in slots
    ]
    x = paddle.concat([*rows, dense], axis=1)
    for width in (400, 400, 400):
        x = static.nn.fc(x, width, activation="relu")
    loss = paddle.nn.functional.binary_cross_entropy_with_logits(
        static.nn.fc(x, 1), paddle.cast(label, "float32"))
    return [label, dense, *slots], loss


def write_multislot(text, path):
    """A line: 1 label 13 dense… 1 id 1 id …"""
    with open(path, "w") as out:
        for labels, dense, ids in data.text_batches(text, rounds.BATCH, rounds.ROWS):
            for label, features, line in zip(labels.astype(int), dense, ids):
                out.write(f"1 {label} {data.DENSE} {' '.join(f'{f:.6g}' for f in features)} ")
                out.write(" ".join(f"1 {i}" for i in line) + "\n")


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # its own and its children's


def main(kind, path):
    if "TRAINING_ROLE" not in os.environ:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        os.environ.update(PADDLE_PSERVERS_IP_PORT_LIST=f"127.0.0.1:{port}", PADDLE_TRAINERS_NUM="1", POD_IP="127.0.0.1",
                          PADDLE_PORT=port, PADDLE_TRAINER_ID="0", PADDLE_TRAINER_ENDPOINTS="127.0.0.1:0")
        server = subprocess.Popen([sys.executable, __file__, kind, path], env=os.environ | {"TRAINING_ROLE": "PSERVER"},
                                  stdout=sys.stderr, preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9))  # ends with us
        os.environ["TRAINING_ROLE"] = "TRAINER"

    import paddle
    from paddle.distributed import fleet

    paddle.enable_static()
    paddle.seed(1)
    fleet.init(fleet.PaddleCloudRoleMaker())
    inputs, loss = build()
    # Its own text needs a part of protobuf that the pure-Python wheel lacks.
    fleet.DistributedStrategy.__repr__ = lambda self: "strategy"
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    fleet.distributed_optimizer(paddle.optimizer.Adam(RATE, lazy_mode=True), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()
    multislot = path + ".multislot"
    write_multislot(path + ".txt", multislot)
    with open(multislot) as file:
        samples = sum(1 for _ in file)
    dataset = paddle.distributed.QueueDataset()
    reader = "cat" if kind == "multislot" else f"{sys.executable} paddle_reader.py"
    dataset.init(batch_size=rounds.BATCH, thread_num=1, use_var=inputs, pipe_command=reader)
    dataset.set_filelist([multislot if kind == "multislot" else path + ".txt"])

    def one_pass():
        executor.train_from_dataset(paddle.static.default_main_program(), dataset, thread=1)
        return samples

    try:
        rounds.serve(one_pass, lambda: processor_seconds("self") + processor_seconds(server.pid))
    finally:
        server.kill()
        server.wait()


main(*sys.argv[1:])
