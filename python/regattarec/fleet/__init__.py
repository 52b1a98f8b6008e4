"""PaddlePaddle's Fleet around a PyTorch program: one script plays the servers and the workers.

    from regattarec import fleet
    from regattarec.fleet import StrategyFactory, role_maker

    fleet.init(role_maker.PaddleCloudRoleMaker())       # before the model
    …                                                   # the model, over regattarec.torch's embeddings
    optimizer = fleet.distributed_optimizer(optimizer, StrategyFactory.create_sync_strategy())
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    if fleet.is_worker():
        fleet.init_worker()
        …                                               # train
        fleet.stop_worker()

A script that does not call these works as well: its first table plays the server, its end says goodbye.
"""
import os
import sys
import typing
from collections.abc import Iterable

import numpy

from regattarec import _core, arguments, errors
from regattarec import job as _job
from regattarec.fleet import role_maker
from regattarec.fleet.strategy import (DistributedStrategy, DistributeTranspilerConfig, Strategy, StrategyFactory,
                                       strategy_of)

if typing.TYPE_CHECKING:
    import torch

    Optimizer = typing.TypeVar("Optimizer", bound=torch.optim.Optimizer)
    Role = role_maker.PaddleCloudRoleMaker | role_maker.UserDefinedRoleMaker
    AnyStrategy = Strategy | DistributedStrategy | DistributeTranspilerConfig
    Array = numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]

__all__ = ["init", "is_server", "is_worker", "is_first_worker", "worker_index", "worker_num", "server_index",
           "server_num", "server_endpoints", "distributed_optimizer", "init_server", "run_server", "init_worker",
           "stop_worker", "barrier_worker", "all_reduce_worker", "split_files", "save_persistables", "load_model",
           "shrink", "save_inference_model", "role_maker", "Strategy", "StrategyFactory", "DistributedStrategy",
           "DistributeTranspilerConfig"]


def init(role: "Role | None" = None, is_collective: bool = False, strategy: "AnyStrategy | None" = None) -> None:
    """Takes the process's part in the job: `role`, or what the environment says. Once, before the first embedding.

        >>> init(role_maker.UserDefinedRoleMaker())                           # alone
        >>> worker_index(), worker_num(), is_first_worker()
        (0, 1, True)
    """
    role_maker.PaddleCloudRoleMaker(is_collective)
    role = role_maker.PaddleCloudRoleMaker() if role is None else role
    if not hasattr(role, "make") or isinstance(role, type):
        raise errors.InvalidArgumentError(
            f"role: {arguments.shown(role)} is none; for instance role_maker.PaddleCloudRoleMaker()")
    chosen = None if strategy is None else strategy_of(strategy)
    job = _job.begin(role.make)
    if chosen is not None:
        job.use(chosen.mode, chosen.geo_step)


def _fleet() -> _core.Fleet:
    if not _job.begun():
        raise errors.FailedPreconditionError("call fleet.init() first: it says what part this process plays")
    job = _job.current()
    job.check_process()
    return job.fleet


def is_server() -> bool:
    return _fleet().is_server


def is_worker() -> bool:
    return _fleet().is_worker


def is_first_worker() -> bool:
    return _fleet().is_first_worker


def worker_index() -> int:
    """From 0 on; -1 in a server."""
    return _fleet().worker_index


def worker_num() -> int:
    return _fleet().worker_num


def server_index() -> int:
    """From 0 on; -1 in a worker."""
    return _fleet().server_index


def server_num() -> int:
    """0 for a process that trains alone."""
    return _fleet().server_num


@typing.overload
def server_endpoints(to_string: typing.Literal[False] = False) -> list[str]: ...
@typing.overload
def server_endpoints(to_string: typing.Literal[True]) -> str: ...


def server_endpoints(to_string: bool = False) -> list[str] | str:
    found = _fleet().server_endpoints
    return ",".join(found) if arguments.flag("to_string", to_string) else found


def distributed_optimizer(optimizer: "Optimizer", strategy: "AnyStrategy | None" = None, *,
                          dense: typing.Literal["local", "server"] | None = None) -> "Optimizer":
    """Makes `optimizer.step()` update the tables of all embeddings of this program, as regattarec.torch.wrap does."""
    _fleet()
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer: distributed_optimizer takes one of torch.optim, not {type(optimizer).__name__}")
    if strategy is not None:
        chosen = strategy_of(strategy)
        _job.current().use(chosen.mode, chosen.geo_step)
    from regattarec.torch.optimizer import wrap
    wrapped: "Optimizer" = wrap(optimizer, dense=dense)
    return wrapped


def init_server(model_dir: arguments.AnyPath | None = "", data_dir: arguments.AnyPath | None = "") -> None:
    """Listens. With `model_dir`, a save on this machine, its part of the tables begins with what is there.

    With `data_dir` (REGATTA_DATA_DIR) what is acknowledged is logged there, and a server that was killed comes back.
    """
    given = [path if path is None or path == "" else arguments.path(name, path)
             for name, path in (("model_dir", model_dir), ("data_dir", data_dir))]
    _fleet().init_server(*(str(path or "") for path in given))


def run_server() -> None:
    """Serves until all workers are done."""
    _fleet().run_server()


def init_worker() -> None:
    """Waits for the servers and the other workers. A session (regattarec.torch.session) does it itself."""
    _fleet()
    _job.current().join()


def stop_worker() -> None:
    """This worker is done; the servers end when all have said so."""
    _fleet()
    _job.current().stop()


def _meet() -> _core.Fleet:
    """All workers are here: with what each of them learnt, unless a session has begun steps that go on."""
    fleet, job = _fleet(), _job.current()
    job.check()
    if job.session is None:
        job.pause()
    return fleet


def barrier_worker() -> None:
    """Returns when every worker has called it."""
    _meet().barrier()


def all_reduce_worker(input: typing.Any, output: "Array | None" = None,
                      mode: typing.Literal["sum", "min", "max"] = "sum") -> "Array":
    """Every worker brings as many numbers and gets the same ones: their sum, min or max, in the shape of `input`.

    Whole numbers stay whole. With `output`, an array, they are put there, too.
    """
    arguments.choice("mode", mode, ("sum", "min", "max"))
    numbers = _numbers(input)
    if numbers.dtype.kind == "u" and numbers.size and int(numbers.max()) >= 2**63:
        raise errors.OutOfRangeError(f"all_reduce_worker: {numbers.max()} is above 2^63 - 1")
    wide: Array = numpy.array(numbers, dtype=numpy.float64 if numbers.dtype.kind == "f" else numpy.int64, order="C")
    if output is not None:
        _check_output(output, wide)
    flat: Array = wide.reshape(-1)
    fleet = _meet()
    if wide.dtype.kind == "f":
        fleet.all_reduce_floats(flat, mode)
    else:
        fleet.all_reduce_integers(flat, mode)
    made = flat.reshape(numbers.shape)
    if output is not None:
        output[...] = made
    return made


def _numbers(given: typing.Any) -> "Array":
    """As an array; the numbers of a tensor without its gradient."""
    try:
        if hasattr(given, "detach"):
            given = given.detach().to("cpu")
        numbers = numpy.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise errors.InvalidArgumentError(f"input: all_reduce_worker takes numbers: {error}") from error
    if numbers.dtype.kind not in "iufb":
        raise errors.InvalidArgumentError(
            f"input: all_reduce_worker takes numbers, not {arguments.shown(given)} ({numbers.dtype})")
    return numbers


def _check_output(output: typing.Any, numbers: "Array") -> None:
    """Before the workers wait for each other."""
    if not isinstance(output, numpy.ndarray):
        raise TypeError(f"output: a {type(output).__name__} is no array of NumPy; the result is returned, too")
    if output.shape != numbers.shape:
        raise errors.InvalidArgumentError(f"output has the shape {output.shape}, and input {numbers.shape}")
    if not numpy.can_cast(numbers.dtype, output.dtype, "same_kind") or not output.flags.writeable:
        raise errors.InvalidArgumentError(
            f"output: an array of {output.dtype} that {'may' if output.flags.writeable else 'must not'} be written cannot "
            f"take numbers of {numbers.dtype}")


def split_files(files: Iterable[arguments.AnyPath]) -> list[str]:
    """This worker's of the files, which all workers name in the same order: even blocks, the first ones longer."""
    if isinstance(files, (str, bytes, os.PathLike)) or not isinstance(files, Iterable):
        raise errors.InvalidArgumentError(f"files: split_files takes a list of paths, not {arguments.shown(files)}")
    found = arguments.paths("files", files)
    fleet = _fleet()
    if fleet.is_server:
        raise errors.FailedPreconditionError("split_files is a worker's: a server reads no files")
    return _core.split_files(found, fleet.worker_index, fleet.worker_num, False)


def save_persistables(executor: typing.Any = None, dirname: arguments.AnyPath | None = None, main_program: object = None, *,
                      model: "torch.nn.Module | None" = None, epoch: int = 0) -> None:
    """Saves the tables with the state of their rules, the optimizer and its parameters, and the state of `model`.

    All workers call it, and the first one writes: save_persistables("model") or save_persistables(None, "model").
    """
    _fleet()
    from regattarec.torch import saves
    path = executor if dirname is None else dirname  # PaddlePaddle's calls name an executor first
    saves.save(arguments.path("dirname", path), model, _job.current().optimizer, epoch, saves.local_parameters())


def load_model(dirname: arguments.AnyPath, *, model: "torch.nn.Module | None" = None) -> int:
    """Goes on from a save: all workers call it after distributed_optimizer and before the first lookup."""
    _fleet()
    from regattarec.torch import saves
    return saves.load(arguments.path("dirname", dirname), model, _job.current().optimizer, saves.local_parameters())


def shrink(threshold: float | None = None) -> typing.NoReturn:
    raise errors.UnimplementedError("shrink: tables do not count shows and clicks yet, by which rows would be dropped")


def save_inference_model(*_: object, **__: object) -> typing.NoReturn:
    raise errors.UnimplementedError("save_inference_model is for Fluid programs; of a PyTorch model "
                                    "regattarec.torch.to_embedding and torch.save make what serves without tables")
