"""When workers see each other's updates, with PaddlePaddle's names for it (docs/cluster.md)."""
import typing

from regattarec import arguments, errors
from regattarec.job import MODES


class Strategy:
    """A mode and, for geo, how many batches a worker makes between two exchanges."""

    mode: str
    geo_step: int | None

    def __init__(self, mode: typing.Literal["sync", "async", "half_async", "geo"], geo_step: int | None = None) -> None:
        self.mode = arguments.choice("mode", mode, MODES)
        self.geo_step = None if geo_step is None else arguments.whole("geo_step", geo_step, 1, arguments.INT32)

    def __repr__(self) -> str:
        return f"Strategy({self.mode!r})" if self.geo_step is None else f"Strategy({self.mode!r}, {self.geo_step})"


class StrategyFactory:
    @staticmethod
    def create_sync_strategy() -> Strategy:
        return Strategy("sync")

    @staticmethod
    def create_async_strategy() -> Strategy:
        return Strategy("async")

    @staticmethod
    def create_half_async_strategy() -> Strategy:
        return Strategy("half_async")

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> Strategy:
        return Strategy("geo", arguments.whole("update_frequency", update_frequency, 1, arguments.INT32))


class _Settings:
    """Attributes that exist can be set; others are refused, instead of doing nothing."""

    def __setattr__(self, name: str, value: typing.Any) -> None:
        known = sorted(key for key in vars(type(self)) if not key.startswith("_") and key != "strategy")
        if name not in known:
            raise errors.InvalidArgumentError(f"{type(self).__name__} has no '{name}'; there are: {', '.join(known)}")
        super().__setattr__(name, value)

    def strategy(self) -> Strategy:
        raise NotImplementedError

    def _flag(self, name: str) -> bool:
        return arguments.flag(name, getattr(self, name))


class DistributeTranspilerConfig(_Settings):
    """Fleet 1.x: sync_mode; without it runtime_split_send_recv is async, else half_async; geo_sgd_mode is geo."""

    sync_mode: bool = True
    runtime_split_send_recv: bool = False
    half_async: bool = False
    geo_sgd_mode: bool = False
    geo_sgd_need_push_nums: int = 100

    def strategy(self) -> Strategy:
        if self._flag("geo_sgd_mode"):
            return Strategy("geo", arguments.whole("geo_sgd_need_push_nums", self.geo_sgd_need_push_nums, 1, arguments.INT32))
        if self._flag("sync_mode"):
            return Strategy("sync")
        return Strategy("half_async" if self._flag("half_async") or not self._flag("runtime_split_send_recv") else "async")


class DistributedStrategy(_Settings):
    """Fleet 2.x: a_sync=False is sync; a_sync_configs' k_steps is 0 for async, for geo the batches between exchanges."""

    a_sync: bool = True
    a_sync_configs: dict[str, int] = {}

    def __init__(self) -> None:
        self.a_sync_configs = {"k_steps": 0}  # each has its own

    def strategy(self) -> Strategy:
        if not isinstance(self.a_sync_configs, dict):
            raise errors.InvalidArgumentError(
                f"a_sync_configs: {arguments.shown(self.a_sync_configs)} is no dict such as {{'k_steps': 100}}")
        unknown = set(self.a_sync_configs) - {"k_steps"}
        if unknown:
            raise errors.InvalidArgumentError(f"a_sync_configs has no {', '.join(sorted(map(str, unknown)))}; there is k_steps")
        steps = arguments.whole("a_sync_configs['k_steps']", self.a_sync_configs.get("k_steps", 0), 0, arguments.INT32)
        if not self._flag("a_sync"):
            if steps:
                raise errors.InvalidArgumentError("a_sync_configs['k_steps'] goes with a_sync=True")
            return Strategy("sync")
        return Strategy("geo", steps) if steps else Strategy("async")


def strategy_of(settings: object) -> Strategy:
    """What distributed_optimizer was given, as a Strategy."""
    if isinstance(settings, Strategy):
        return settings
    if isinstance(settings, _Settings):
        return settings.strategy()
    raise errors.InvalidArgumentError(f"strategy: {arguments.shown(settings)} is none; "
                                      "for instance StrategyFactory.create_sync_strategy()")
