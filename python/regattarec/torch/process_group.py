"""torch.distributed among the workers of a job: for DistributedDataParallel beside tables on servers."""
import ipaddress
import socket
from datetime import timedelta

import numpy
import torch

from regattarec import arguments, errors
from regattarec import job as _job
from regattarec.session import ask_to_begin_again

_MOST_MINUTES = 365 * 24 * 60


def _own_address(server: str) -> str:
    """This machine's IPv4 address on the way to a server."""
    host, port = server.rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))  # sends nothing
        return str(probe.getsockname()[0])


def init_process_group(backend: str = "gloo", timeout_minutes: float = 10) -> None:
    """Makes torch.distributed's process group of all workers, with their ranks.

    It comes after the modules and before DistributedDataParallel and wrap. All workers call it; alone it is a group of
    one. A worker that is missing for longer than the timeout is an error of torch.distributed.
    """
    if not torch.distributed.is_available():
        raise errors.UnimplementedError("this PyTorch was built without torch.distributed: install another one")
    known = [name for name in ("gloo", "nccl", "mpi") if getattr(torch.distributed, f"is_{name}_available", lambda: True)()]
    arguments.choice("backend", backend, known)
    minutes = arguments.real("timeout_minutes", timeout_minutes, 0)
    if not 0 < minutes <= _MOST_MINUTES:
        raise errors.InvalidArgumentError(f"timeout_minutes: {minutes:g} is not above 0 and at most {_MOST_MINUTES}, a year")
    if torch.distributed.is_initialized():
        raise errors.FailedPreconditionError("torch.distributed has a process group already: leave this call out")
    job = _job.current()
    job.join(returns=job.fleet.workers_return)
    if job.fleet.replaces:  # the others have a group without this process
        ask_to_begin_again("this process replaces a killed one", ["the process group"])
    fleet, wait = job.fleet, timedelta(minutes=minutes)
    alone = fleet.worker_num == 1
    host = "127.0.0.1" if alone or not fleet.is_first_worker else _own_address(fleet.server_endpoints[0])
    store, place = None, numpy.zeros(2, dtype=numpy.int64)
    if fleet.is_first_worker:
        store = torch.distributed.TCPStore(host, 0, fleet.worker_num, True, wait, wait_for_workers=False)
        place[:] = int(ipaddress.IPv4Address(host)), store.port
    fleet.all_reduce_integers(place, "max")
    if store is None:
        address = str(ipaddress.IPv4Address(int(place[0])))
        store = torch.distributed.TCPStore(address, int(place[1]), fleet.worker_num, False, wait)
    torch.distributed.init_process_group(backend, store=store, rank=fleet.worker_index, world_size=fleet.worker_num,
                                         timeout=wait)
