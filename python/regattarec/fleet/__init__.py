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

import numpy

from regattarec import _core, errors
from regattarec import job as _job
from regattarec.fleet import role_maker
from regattarec.fleet.strategy import (DistributedStrategy, DistributeTranspilerConfig, Strategy, StrategyFactory,
                                       strategy_of)

__all__ = ["init", "is_server", "is_worker", "is_first_worker", "worker_index", "worker_num", "server_index",
           "server_num", "server_endpoints", "distributed_optimizer", "init_server", "run_server", "init_worker",
           "stop_worker", "barrier_worker", "all_reduce_worker", "split_files", "save_persistables", "load_model",
           "shrink", "save_inference_model", "role_maker", "Strategy", "StrategyFactory", "DistributedStrategy",
           "DistributeTranspilerConfig"]


def init(role=None, is_collective=False, strategy=None):
    """Takes the process's part in the job: `role`, or what the environment says. Once, before the first embedding."""
    if is_collective:
        role_maker.PaddleCloudRoleMaker(is_collective=True)
    role = role_maker.PaddleCloudRoleMaker() if role is None else role
    if not hasattr(role, "make"):
        raise errors.InvalidArgumentError(f"role: {role!r} is none; for instance role_maker.PaddleCloudRoleMaker()")
    job = _job.begin(role.make)
    if strategy is not None:
        _use(job, strategy)


def _fleet():
    if not _job.begun():
        raise errors.FailedPreconditionError("call fleet.init() first: it says what part this process plays")
    return _job.current().fleet


def _use(job, strategy):
    chosen = strategy_of(strategy)
    job.use(chosen.mode, chosen.geo_step)


def is_server():
    return _fleet().is_server


def is_worker():
    return _fleet().is_worker


def is_first_worker():
    return _fleet().is_first_worker


def worker_index():
    """From 0 on; -1 in a server."""
    return _fleet().worker_index


def worker_num():
    return _fleet().worker_num


def server_index():
    """From 0 on; -1 in a worker."""
    return _fleet().server_index


def server_num():
    """0 for a process that trains alone."""
    return _fleet().server_num


def server_endpoints(to_string=False):
    found = _fleet().server_endpoints
    return ",".join(found) if to_string else found


def distributed_optimizer(optimizer, strategy=None, *, dense=None):
    """Makes `optimizer.step()` update the tables of all embeddings of this program, as regattarec.torch.wrap does."""
    _fleet()
    if strategy is not None:
        _use(_job.current(), strategy)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"distributed_optimizer takes one of torch.optim, not {type(optimizer).__name__}")
    from regattarec.torch.optimizer import wrap
    return wrap(optimizer, dense=dense)


def init_server(model_dir="", data_dir=""):
    """Listens. With `model_dir`, a save on this machine, its part of the tables begins with what is there.

    With `data_dir` (REGATTA_DATA_DIR) what is acknowledged is logged there, and a server that was killed comes back.
    """
    _fleet().init_server(os.fspath(model_dir or ""), os.fspath(data_dir or ""))


def run_server():
    """Serves until all workers are done."""
    _fleet().run_server()


def init_worker():
    """Waits for the servers and the other workers. A session (regattarec.torch.session) does it itself."""
    _fleet()
    _job.current().join()


def stop_worker():
    """This worker is done; the servers end when all have said so."""
    _fleet()
    _job.current().stop()


def _meet():
    """All workers are here: with what each of them learnt, unless a session has begun steps that go on."""
    fleet, job = _fleet(), _job.current()
    if job.session is None:
        job.pause()
    return fleet


def barrier_worker():
    """Returns when every worker has called it."""
    _meet().barrier()


def all_reduce_worker(input, output=None, mode="sum"):
    """Every worker brings as many numbers and gets the same ones: their sum, min or max, in the shape of `input`.

    Whole numbers stay whole. With `output`, an array, they are put there, too.
    """
    if mode not in ("sum", "min", "max"):
        raise errors.InvalidArgumentError(f"mode '{mode}': there are sum, min and max")
    numbers = numpy.asarray(input)
    if numbers.dtype.kind not in "iufb":
        raise errors.InvalidArgumentError(f"all_reduce_worker takes numbers, not {numbers.dtype}")
    if numbers.dtype.kind == "u" and numbers.size and int(numbers.max()) >= 2**63:
        raise errors.OutOfRangeError(f"all_reduce_worker: {numbers.max()} is above 2^63 - 1")
    wide = numpy.array(numbers, dtype=numpy.float64 if numbers.dtype.kind == "f" else numpy.int64, order="C")
    flat = wide.reshape(-1)
    fleet = _meet()
    (fleet.all_reduce_floats if wide.dtype.kind == "f" else fleet.all_reduce_integers)(flat, mode)
    made = flat.reshape(numbers.shape)
    if output is not None:
        if numpy.shape(output) != made.shape:
            raise errors.InvalidArgumentError(
                f"output has the shape {numpy.shape(output)}, and input {made.shape}")
        output[...] = made
    return made


def split_files(files):
    """This worker's of the files, which all workers name in the same order: even blocks, the first ones longer."""
    if isinstance(files, (str, bytes)) or not all(isinstance(file, (str, os.PathLike)) for file in files):
        raise errors.InvalidArgumentError("split_files takes a list of paths")
    fleet = _fleet()
    if fleet.is_server:
        raise errors.FailedPreconditionError("split_files is a worker's: a server reads no files")
    return _core.split_files([os.fspath(file) for file in files], fleet.worker_index, fleet.worker_num, False)


def _path(executor, dirname):
    path = executor if dirname is None else dirname  # PaddlePaddle's calls name an executor first
    if not isinstance(path, (str, os.PathLike)):
        raise errors.InvalidArgumentError(f"dirname: {path!r} is no path")
    return os.fspath(path)


def save_persistables(executor=None, dirname=None, main_program=None, *, model=None, epoch=0):
    """Saves the tables with the state of their rules, the optimizer and its parameters, and the state of `model`.

    All workers call it, and the first one writes: save_persistables("model") or save_persistables(None, "model").
    """
    _fleet()
    from regattarec.torch import saves
    saves.save(_path(executor, dirname), model, _job.current().optimizer, epoch, saves.local_parameters())


def load_model(dirname, *, model=None):
    """Goes on from a save: all workers call it after distributed_optimizer and before the first lookup."""
    _fleet()
    from regattarec.torch import saves
    return saves.load(_path(dirname, None), model, _job.current().optimizer, saves.local_parameters())


def shrink(threshold=None):
    raise errors.UnimplementedError("shrink: tables do not count shows and clicks yet, by which rows would be dropped")


def save_inference_model(*_, **__):
    raise errors.UnimplementedError("save_inference_model is for Fluid programs; of a PyTorch model "
                                    "regattarec.torch.to_embedding and torch.save make what serves without tables")
