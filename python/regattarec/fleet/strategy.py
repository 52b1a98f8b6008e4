"""When workers see each other's updates, with PaddlePaddle's names for it (docs/cluster.md)."""
from regattarec import errors


class Strategy:
    """A mode and, for geo, how many batches a worker makes between two exchanges."""

    def __init__(self, mode, geo_step=None):
        self.mode, self.geo_step = mode, geo_step

    def __repr__(self):
        return f"Strategy({self.mode!r})" if self.geo_step is None else f"Strategy({self.mode!r}, {self.geo_step})"


def _count(name, value, least):
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise errors.InvalidArgumentError(f"{name}: {value!r} is not a whole number from {least} on")
    return value


class StrategyFactory:
    @staticmethod
    def create_sync_strategy():
        return Strategy("sync")

    @staticmethod
    def create_async_strategy():
        return Strategy("async")

    @staticmethod
    def create_half_async_strategy():
        return Strategy("half_async")

    @staticmethod
    def create_geo_strategy(update_frequency=100):
        return Strategy("geo", _count("update_frequency", update_frequency, 1))


class _Settings:
    """Attributes that exist can be set; others are refused, instead of doing nothing."""

    def __setattr__(self, name, value):
        if not hasattr(type(self), name):
            known = ", ".join(sorted(key for key in vars(type(self)) if not key.startswith("_") and key != "strategy"))
            raise errors.InvalidArgumentError(f"{type(self).__name__} has no '{name}'; there are: {known}")
        super().__setattr__(name, value)


class DistributeTranspilerConfig(_Settings):
    """Fleet 1.x: sync_mode; without it runtime_split_send_recv is async, else half_async; geo_sgd_mode is geo."""

    sync_mode = True
    runtime_split_send_recv = False
    half_async = False
    geo_sgd_mode = False
    geo_sgd_need_push_nums = 100

    def strategy(self):
        if self.geo_sgd_mode:
            return Strategy("geo", _count("geo_sgd_need_push_nums", self.geo_sgd_need_push_nums, 1))
        if self.sync_mode:
            return Strategy("sync")
        return Strategy("half_async" if self.half_async or not self.runtime_split_send_recv else "async")


class DistributedStrategy(_Settings):
    """Fleet 2.x: a_sync=False is sync; a_sync_configs' k_steps is 0 for async, for geo the batches between exchanges."""

    a_sync = True
    a_sync_configs = {"k_steps": 0}

    def strategy(self):
        unknown = set(self.a_sync_configs) - {"k_steps"}
        if unknown:
            raise errors.InvalidArgumentError(f"a_sync_configs has no {', '.join(sorted(unknown))}; there is k_steps")
        steps = _count("a_sync_configs['k_steps']", self.a_sync_configs.get("k_steps", 0), 0)
        if not self.a_sync:
            if steps:
                raise errors.InvalidArgumentError("a_sync_configs['k_steps'] goes with a_sync=True")
            return Strategy("sync")
        return Strategy("geo", steps) if steps else Strategy("async")


def strategy_of(settings):
    """What distributed_optimizer was given, as a Strategy."""
    if isinstance(settings, Strategy):
        return settings
    if isinstance(settings, _Settings):
        return settings.strategy()
    raise errors.InvalidArgumentError(f"strategy: {settings!r} is none; for instance StrategyFactory.create_sync_strategy()")
