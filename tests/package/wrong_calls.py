"""Calls that mypy must find: each line that ends in a comment with the kind of error has that error, and no other line has one."""
import numpy
import torch

import regattarec
import regattarec.torch as rt
from regattarec import _core, data, fleet
from regattarec.fleet import Strategy, StrategyFactory, role_maker


def wrong(layer: torch.nn.Linear, sgd: torch.optim.SGD, keys: torch.Tensor, array: numpy.ndarray) -> None:
    emb, bag = rt.Embedding(None, 8), rt.EmbeddingBag(None, 8)
    rt.Embedding("many", 8)  # arg-type
    rt.Embedding(None, 8, rule="adam")  # arg-type
    rt.Embedding(None, 8, rule=rt.Adagrad)  # arg-type
    rt.Embedding(None, 8, init=0.5)  # arg-type
    rt.Embedding(None, 8, tabel="users")  # call-arg
    rt.EmbeddingBag(None, 8, mode="max")  # arg-type
    rt.Adagrad(rate=0.1)  # call-arg
    rt.SGD(lr="fast")  # arg-type
    rt.Adagard(0.1)  # attr-defined
    emb([1, 2])  # arg-type
    emb(keys, keys)  # call-arg
    bag(keys, [0, 1])  # arg-type
    emb(keys).rows  # attr-defined
    emb.fill(keys)  # call-arg
    emb.table.nmae  # attr-defined
    rt.to_embedding(layer, keys)  # arg-type
    rt.freeze(None)  # arg-type
    rt.prefetch(emb)  # arg-type
    rt.wrap(layer, emb)  # call-overload
    rt.wrap(sgd, [emb])  # call-overload
    rt.wrap(sgd, emb, dense="remote")  # call-overload
    rt.wrap(None, emb, dense="server")  # call-overload
    rt.save(None)  # arg-type
    rt.save("model", sgd)  # arg-type
    rt.load("model", epoch=1)  # call-arg
    rt.init(mode="fast")  # arg-type
    rt.step(n="8")  # arg-type
    rt.init_process_group(timeout_minutes="1")  # arg-type
    rt.session(checkpoint_minute=5)  # call-arg
    rt.session(metric="auc")  # arg-type
    rt.session(state=sgd)  # arg-type
    with rt.session() as s:
        for epoch in s.epochs("3"):  # arg-type
            s.batches(5)  # arg-type
            s.batches(data.Dataset("clicks", slots=4), acumulate=2)  # call-arg
            epoch.upper()  # attr-defined
            s.observed(0.5)  # attr-defined
    data.Dataset("clicks")  # call-arg
    data.Dataset(5, slots=4)  # arg-type
    data.Dataset("clicks", slots=4, batch_size="512")  # arg-type
    data.Dataset("clicks", slots=4, split="half")  # arg-type
    data.Dataset("clicks", slots=4, max_bad_lines="9")  # arg-type
    data.Datasets  # attr-defined
    for batch in data.Dataset("clicks", slots=4):
        batch.lables  # attr-defined
    data.generate("clicks", compress="zip")  # arg-type
    fleet.init("worker")  # arg-type
    fleet.init(strategy="sync")  # arg-type
    fleet.distributed_optimizer(layer)  # type-var
    fleet.all_reduce_worker([1], mode="mean")  # arg-type
    fleet.split_files(5)  # arg-type
    fleet.server_endpoints(to_string=True).append("a")  # attr-defined
    fleet.worker_count()  # attr-defined
    role_maker.UserDefinedRoleMaker(role="worker")  # arg-type
    Strategy("fast")  # arg-type
    StrategyFactory.create_geo_strategy("often")  # arg-type
    regattarec.NoSuchError  # attr-defined
    _core.Lookup(0, "sum", "keys", array)  # call-arg arg-type
