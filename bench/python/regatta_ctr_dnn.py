"""CTR-DNN in PyTorch on a table of regattarec, one core: the network and the optimizers of peers/torch_ctr_dnn.py.
Usage: regatta_ctr_dnn.py text|memory alone|server|server_dense PATH     (PATH.txt by regatta_rounds write)
With a server the rows are in its process, on another core; with server_dense the network's parameters, too."""
import os
import sys

import peers  # noqa: F401
import rounds

CORES = os.sched_getaffinity(0)
rounds.one_core()
import torch  # noqa: E402

import ctr_dnn  # noqa: E402
import data  # noqa: E402
import regattarec.data  # noqa: E402
import regattarec.torch as rt  # noqa: E402
import server  # noqa: E402


def main(kind, where, path):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if where != "alone":
        server.start(CORES)
    embedding = rt.EmbeddingBag(None, ctr_dnn.DIM, mode="sum", include_last_offset=True, rule=rt.Adam(lr=ctr_dnn.RATE),
                                init=rt.Uniform(0.05))
    mlp = ctr_dnn.Mlp()
    if where == "server_dense":  # a rule does not know of fused
        optimizer = rt.wrap(torch.optim.Adam(mlp.layers.parameters(), lr=ctr_dnn.RATE), embedding, dense="server")
    else:
        optimizer = rt.wrap(ctr_dnn.adam(mlp.layers.parameters()), embedding)
    batches = regattarec.data.Dataset(path + ".txt", slots=data.SLOTS, dense_dim=data.DENSE, batch_size=rounds.BATCH)
    if kind == "memory":
        batches = list(batches)

    def one_pass():
        samples = 0
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            mlp.backward(embedding(batch.keys, batch.offsets), batch.dense, batch.labels)
            optimizer.step()
            samples += len(batch.labels)
        return samples

    rounds.serve(one_pass)


main(*sys.argv[1:])
