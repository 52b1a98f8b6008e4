"""A program as a type checker sees it: mypy accepts all that it does with the package, and finds what is wrong (wrong_calls.py)."""
import pathlib
from typing import Any

import numpy
import torch

import regattarec
import regattarec.torch as rt
from regattarec import _core, data, fleet
from regattarec.fleet import DistributedStrategy, DistributeTranspilerConfig, Strategy, StrategyFactory, role_maker


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slots = rt.EmbeddingBag(None, 8, mode="sum", table="slots", rule=rt.Adagrad(lr=0.05), init=rt.Uniform(0.01),
                                     include_last_offset=True, padding_idx=0)
        self.users = rt.Embedding(1000, 8, table="users", rule=rt.Adam(), init=rt.Normal(0.1), seed=3)
        self.words = rt.Embedding.from_pretrained(torch.zeros(10, 8), range(10), freeze=False, table="words")
        self.top = torch.nn.Linear(8, 1)

    def forward(self, keys: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        pooled: torch.Tensor = self.slots(keys, offsets, per_sample_weights=None)
        users: torch.Tensor = self.users(keys[:1])
        made: torch.Tensor = self.top(pooled + users)
        return made


def clicks(folder: pathlib.Path) -> data.Dataset:
    told = data.generate(folder, samples=1000, slots=4, dense=0, compress="gz")
    print(told["train"]["auc"])
    dataset = data.Dataset([folder / "train"], slots=["1", "2"], dense_dim=2, batch_size=32, shuffle=True, in_memory=True,
                           index=fleet.worker_index(), count=fleet.worker_num(), split="mod", tensors=True)
    print(dataset.bad_lines, dataset.files[0], dataset.epoch + dataset.batch_size)
    return dataset


def train(folder: pathlib.Path) -> float:
    model, total = Model(), 0.0
    rt.init(mode="geo", geo_step=10, nan_policy="skip")
    optimizer: torch.optim.Adam = rt.wrap(torch.optim.Adam(model.top.parameters(), lr=1e-3), model, dense="local")
    for batch in clicks(folder):
        rt.prefetch((model.slots, batch.keys, batch.offsets), (model.users, batch.keys[:1]))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch.keys, batch.offsets).squeeze(1), batch.labels)
        rt.step(n=len(batch.labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    rt.save(folder / "model", model=model, optimizer=optimizer, epoch=1)
    epoch: int = rt.load("model", model=model, optimizer=optimizer)
    rt.stop()
    return total + epoch


def in_epochs(model: Model, optimizer: torch.optim.Optimizer, folder: pathlib.Path) -> float:
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with rt.session(save=folder, model=model, state=[scheduler], checkpoint_minutes=0.5, keep_epochs=2, seed=None,
                    metric="regression", progress=False) as s:
        for epoch in s.epochs(3):
            for batch in s.batches(clicks(folder), accumulate=2):
                logits = model(batch.keys, batch.offsets)
                s.observe(logits.mean(), predictions=logits, labels=batch.labels)
            for number in s.batches([1, 2]):
                print(number + epoch + s.step + s.epoch)
            for text in s.batches(lambda epoch: [f"batch of {epoch}"]):
                print(text.upper())
    s.history.plot("loss", "auc")
    loss: float = s.history[-1]["loss"]
    return loss


def rows(model: Model) -> torch.Tensor:
    model.users.fill(numpy.arange(3), numpy.zeros((3, 8)))
    model.words.fill([1, 2], torch.zeros(2, 8))
    rt.freeze(model, frozen=True)
    model.words.requires_grad_(False).fill(torch.arange(2), [[0.5] * 8] * 2)
    print(model.words.table.name, model.words.table.rule.lr, model.slots.mode, model.users.num_embeddings)
    made: torch.nn.Embedding = rt.to_embedding(model.users, [1, 2], freeze=False, padding_idx=-1)
    return made.weight + rt.to_embedding("words", torch.arange(2)).weight


def rules() -> list[dict[str, Any]]:
    some: list[rt.Rule] = [rt.SGD(0.1), rt.Momentum(lr=0.1, momentum=0.9, nesterov=True), rt.SharedAdagrad(initial_g2sum=1),
                           rt.StdAdagrad(), rt.SharedAdam(beta1=0.5), rt.RMSprop(centered=True), rt.Ftrl(lambda1=0.1)]
    values: list[rt.Init] = [rt.Uniform(0.1), rt.Normal(std=0.1), rt.Constant(value=1)]
    return [rule.config() for rule in some] + [value.config() for value in values]


def as_fleet(optimizer: torch.optim.SGD) -> None:
    fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 2, ["127.0.0.1:36000"]), strategy=Strategy("geo", 5))
    fleet.init(role_maker.PaddleCloudRoleMaker())
    config, settings = DistributeTranspilerConfig(), DistributedStrategy()
    config.sync_mode, settings.a_sync, settings.a_sync_configs = False, True, {"k_steps": 5}
    wrapped: torch.optim.SGD = fleet.distributed_optimizer(optimizer, config, dense="server")
    for strategy in (StrategyFactory.create_sync_strategy(), StrategyFactory.create_geo_strategy(update_frequency=5)):
        wrapped = fleet.distributed_optimizer(wrapped, strategy)
    if fleet.is_server():
        fleet.init_server(pathlib.Path("model"), data_dir="log")
        fleet.run_server()
    if fleet.is_worker() and not fleet.is_first_worker():
        fleet.init_worker()
        rt.init_process_group(timeout_minutes=2.5)
        fleet.barrier_worker()
        out = numpy.zeros(2)
        total: float = fleet.all_reduce_worker([1, 2], out, mode="max").sum()
        names: list[str] = fleet.split_files([pathlib.Path("a"), "b"])
        ends: str = fleet.server_endpoints(to_string=True)
        print(total, names[0] + ends + fleet.server_endpoints()[0], fleet.server_num() + fleet.server_index())
        fleet.save_persistables("model", epoch=fleet.load_model("model") + 1)
        fleet.stop_worker()


def lookup(keys: numpy.ndarray, offsets: numpy.ndarray) -> int:
    return _core.Lookup(0, "sum", keys, offsets, None).keys


if __name__ == "__main__":
    try:
        train(pathlib.Path("clicks"))
    except regattarec.NotFoundError as error:
        print(str(error), regattarec.__version__)
    except (regattarec.InvalidArgumentError, regattarec.Error) as failure:
        raise SystemExit(str(failure)) from failure
