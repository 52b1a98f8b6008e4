"""CTR-DNN in Paddle's static graph, local, one core: 26 slots, dim 10, 400-400-400, batch 1000, lazy Adam.
Usage: paddle_ctr_dnn.py text|memory PATH     (PATH.txt by regatta_rounds write; see rounds.py)
On AMD its BLAS (MKL) is several times slower than it could be; MKL_DEBUG_CPU_TYPE=5 sets that right."""
import sys

import rounds

rounds.one_core()
import paddle  # noqa: E402
from paddle import static  # noqa: E402

import data  # noqa: E402

DIM, RATE = 10, 1e-4


def build():
    """The loss of a batch fed as labels, dense and ids."""
    labels = static.data("labels", [None, 1], "float32")
    dense = static.data("dense", [None, data.DENSE], "float32")
    ids = static.data("ids", [None, data.SLOTS], "int64")
    rows = static.nn.embedding(ids, [rounds.ROWS, DIM], is_sparse=True,
                               param_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Uniform(-0.05, 0.05)))
    x = paddle.concat([paddle.reshape(rows, [-1, data.SLOTS * DIM]), dense], axis=1)
    for width in (400, 400, 400):
        x = static.nn.fc(x, width, activation="relu")
    loss = paddle.nn.functional.binary_cross_entropy_with_logits(static.nn.fc(x, 1), labels)
    paddle.optimizer.Adam(RATE, lazy_mode=True).minimize(loss)
    return loss


def main(kind, path):
    paddle.enable_static()
    paddle.seed(1)
    loss = build()
    executor = static.Executor(paddle.CPUPlace())
    executor.run(static.default_startup_program())

    def feeds():
        for labels, dense, ids in data.text_batches(path + ".txt", rounds.BATCH, rounds.ROWS):
            yield {"labels": labels.reshape(-1, 1), "dense": dense, "ids": ids}

    in_memory = list(feeds()) if kind == "memory" else None

    def one_pass():
        samples = 0
        for feed in in_memory or feeds():
            executor.run(feed=feed, fetch_list=[loss])
            samples += len(feed["labels"])
        return samples

    rounds.serve(one_pass)


main(*sys.argv[1:])
