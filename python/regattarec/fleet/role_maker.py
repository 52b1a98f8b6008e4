"""Which part a process plays: as the environment says, or as the program says."""
import enum

from regattarec import _core, errors


class Role(enum.IntEnum):
    WORKER = 1
    SERVER = 2


class PaddleCloudRoleMaker:
    """The role that PaddlePaddle's variables name (docs/cluster.md). Without any the process trains alone."""

    def __init__(self, is_collective=False):
        if is_collective:
            raise errors.UnimplementedError("is_collective=True: there is no collective training yet; for "
                                            "DistributedDataParallel beside servers see examples/torch_hybrid")

    def make(self):
        return _core.Fleet()


class UserDefinedRoleMaker:
    """The role that the program names.

    `current_id` counts workers, or servers for a server. Addresses outside this machine need credentials, which
    REGATTA_TOKEN_FILE and REGATTA_TLS_CERT, _KEY and _CA name, or REGATTA_INSECURE=1 on a trusted network.
    """

    def __init__(self, current_id=0, role=Role.WORKER, worker_num=1, server_endpoints=()):
        if role not in (Role.WORKER, Role.SERVER):
            raise errors.InvalidArgumentError(f"role: {role!r} is neither Role.WORKER nor Role.SERVER")
        for name, value in (("current_id", current_id), ("worker_num", worker_num)):
            if not isinstance(value, int):
                raise errors.InvalidArgumentError(f"{name}: {value!r} is not a whole number")
        if isinstance(server_endpoints, str) or not all(isinstance(one, str) for one in server_endpoints):
            raise errors.InvalidArgumentError(
                f"server_endpoints: {server_endpoints!r} is no list such as ['10.0.0.1:36000', '10.0.0.2:36000']")
        self._role = dict(server=role == Role.SERVER, current_id=current_id, worker_num=worker_num,
                          server_endpoints=list(server_endpoints))

    def make(self):
        return _core.Fleet.user_defined(**self._role)
