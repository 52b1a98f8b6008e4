"""Which part a process plays: as the environment says, or as the program says."""
import enum
from collections.abc import Iterable

from regattarec import _core, arguments, errors


class Role(enum.IntEnum):
    WORKER = 1
    SERVER = 2


class PaddleCloudRoleMaker:
    """The role that PaddlePaddle's variables name (docs/cluster.md). Without any the process trains alone."""

    def __init__(self, is_collective: bool = False) -> None:
        if arguments.flag("is_collective", is_collective):
            raise errors.UnimplementedError("is_collective=True: there is no collective training yet; for "
                                            "DistributedDataParallel beside servers see examples/torch_hybrid")

    def make(self) -> _core.Fleet:
        return _core.Fleet()


class UserDefinedRoleMaker:
    """The role that the program names.

    `current_id` counts workers, or servers for a server. Addresses outside this machine need credentials, which
    REGATTA_TOKEN_FILE and REGATTA_TLS_CERT, _KEY and _CA name, or REGATTA_INSECURE=1 on a trusted network.
    """

    def __init__(self, current_id: int = 0, role: Role | int = Role.WORKER, worker_num: int = 1,
                 server_endpoints: Iterable[str] = ()) -> None:
        if isinstance(role, bool) or not isinstance(role, int) or role not in (Role.WORKER, Role.SERVER):
            raise errors.InvalidArgumentError(f"role: {arguments.shown(role)} is neither Role.WORKER nor Role.SERVER")
        self._server = role == Role.SERVER
        self._endpoints = arguments.names("server_endpoints", server_endpoints, "['10.0.0.1:36000', '10.0.0.2:36000']")
        self._current_id = arguments.whole("current_id", current_id, 0, arguments.INT32)
        self._worker_num = arguments.whole("worker_num", worker_num, 1, arguments.INT32)

    def make(self) -> _core.Fleet:
        return _core.Fleet.user_defined(server=self._server, current_id=self._current_id, worker_num=self._worker_num,
                                        server_endpoints=self._endpoints)
