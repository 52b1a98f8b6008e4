"""Embedding tables for PyTorch models, without a bound on their size.

    import regattarec.torch as rt
    emb = rt.EmbeddingBag(None, 16, mode="sum", table="slots", rule=rt.Adagrad(lr=0.05))
    opt = rt.wrap(torch.optim.Adam(mlp.parameters(), lr=1e-3), emb)
    for ids, offsets, dense, y in loader:
        loss = bce(mlp(emb(ids, offsets), dense), y)
        opt.zero_grad(); loss.backward(); opt.step()

The rows that a step reads are updated by `opt.step()`, where they are: in this process, or on servers if the
environment names them. The script does not change.
"""
import types

import torch

from regattarec import _core, errors
from regattarec import job as _job
from regattarec import tensors
from regattarec.rules import *  # noqa: F403
from regattarec.rules import SGD, Constant, Init, Rule, Uniform
from regattarec import rules as _rules

__all__ = [*_rules.__all__, "Embedding", "EmbeddingBag", "wrap", "save", "load", "init", "stop", "step"]

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_ONE = torch.zeros(1)


class _Table:
    """A table as modules and optimizers see it: what its lookups of the present step were, and their gradients.

    Between backward and step the gradients of the step's rows are in `rows.grad`, where gradient scalers and clipping
    look for them. The shape of `rows` changes from step to step; it takes no memory of its own.
    """

    def __init__(self, name, dim, rule, init, index):
        self.name, self.dim, self.rule, self.init, self.index = name, dim, rule, init, index
        self.rows = torch.nn.Parameter(torch.empty(0, dim))
        self._lookups = []  # whose gradients are in rows.grad, in this order

    def add(self, lookup, grad):
        if self.rows.grad is None:
            self._lookups = []
        else:
            grad = torch.cat([self.rows.grad, grad])
        self._lookups.append(lookup)
        self.rows.grad = None
        self.rows.data = _ONE.expand(grad.shape)
        self.rows.grad = grad

    def take(self):
        """(lookup, gradients) of the step, and none from then on."""
        grad, lookups = self.rows.grad, self._lookups
        self.rows.grad, self._lookups = None, []
        if grad is None:
            return []
        parts = torch.split(grad, [lookup.keys for lookup in lookups])
        return list(zip(lookups, parts))


class _Step:
    """What the lookups of the present step add up to."""

    def __init__(self):
        self.samples = 0
        self.given = None  # by step(n=)
        self.fresh = True  # whether the next lookup begins another batch

    def count(self, samples):
        if self.fresh:
            self.samples += samples
            self.fresh = False

    def take(self):
        n = self.samples if self.given is None else self.given
        self.__init__()
        return max(n, 1)


_tables = {}
_step = _Step()


def _table(name, dim, rule, init, seed):
    if not isinstance(rule, Rule):
        raise errors.InvalidArgumentError(f"rule: {rule!r} is none; for instance regattarec.torch.Adagrad(lr=0.05)")
    if not isinstance(init, Init):
        raise errors.InvalidArgumentError(f"init: {init!r} is none; for instance regattarec.torch.Uniform(0.01)")
    if not isinstance(dim, int) or dim < 1:
        raise errors.InvalidArgumentError(f"embedding_dim: {dim!r} is not a whole number above 0")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode()) <= 256 or name == "dense":
        raise errors.InvalidArgumentError(
            f"table: {name!r} is no name for a table: at most 256 bytes of printable text, and not 'dense', under "
            "which saves have the other parameters")
    index = _job.current().declare(
        {"name": name, "dim": dim, "rule": rule.config(), "init": init.config(), "seed": seed})
    if name not in _tables:
        _tables[name] = _Table(name, dim, rule, init, index)
    return _tables[name]


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, anchor, weights, table, lookup, out, rows):
        ctx.table, ctx.lookup, ctx.rows = table, lookup, rows
        ctx.weights_like = weights
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        _step.fresh = True
        flat = grad.detach().to("cpu", torch.float32).reshape(-1, ctx.table.dim).contiguous()
        merged = torch.empty(ctx.lookup.keys, ctx.table.dim)
        ctx.lookup.merge(flat, merged)
        ctx.table.add(ctx.lookup, merged)
        weights_grad = None
        if ctx.needs_input_grad[1]:
            weights_grad = torch.empty(ctx.lookup.ids)
            ctx.lookup.merge_weights(ctx.rows, flat, weights_grad)
            weights_grad = weights_grad.reshape(ctx.weights_like.shape).to(ctx.weights_like)
        return None, weights_grad, None, None, None, None


def _keys(ids):
    """The ids as int64 on the CPU, in one piece."""
    if not isinstance(ids, torch.Tensor):
        raise TypeError(f"ids must be a tensor of whole numbers, not {type(ids).__name__}")
    if ids.dtype not in _INTEGERS:
        raise errors.InvalidArgumentError(f"ids are {ids.dtype}; they must be whole numbers, for instance torch.int64")
    return ids.detach().to("cpu", torch.int64).reshape(-1).contiguous()


class _Module(torch.nn.Module):
    def __init__(self, num_embeddings, embedding_dim, table, rule, init, seed, padding_idx):
        super().__init__()
        if num_embeddings is not None and (not isinstance(num_embeddings, int) or num_embeddings < 1):
            raise errors.InvalidArgumentError(
                f"num_embeddings: {num_embeddings!r} is neither None (no bound) nor a whole number above 0")
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.table = _table(table, embedding_dim, rule, init, seed)
        self._anchor = torch.zeros((), requires_grad=True)

    def _look_up(self, mode, keys, offsets, weights, samples, device):
        """[bags or ids, dim]."""
        if self.num_embeddings is not None and keys.numel() and (
                int(keys.min()) < 0 or int(keys.max()) >= self.num_embeddings):
            raise errors.OutOfRangeError(
                f"table '{self.table.name}': ids from {int(keys.min())} to {int(keys.max())}, and num_embeddings is "
                f"{self.num_embeddings}; None is no bound")
        train = self.training and torch.is_grad_enabled()
        values = None if weights is None else weights.detach().to("cpu", torch.float32).reshape(-1).contiguous()
        lookup = _core.Lookup(self.table.index, mode, keys, offsets, values)
        out = torch.empty(lookup.ids if mode == "none" else lookup.bags, self.embedding_dim)
        needs_rows = train and weights is not None and weights.requires_grad
        rows = torch.empty(lookup.keys, self.embedding_dim) if needs_rows else None
        _job.current().pull([(lookup, out, rows)], train)
        if train:
            _step.count(samples)
            out = _Lookup.apply(self._anchor, weights, self.table, lookup, out, rows)
        return out.to(device)

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}, table='{self.table.name}', rule={self.table.rule}"


class EmbeddingBag(_Module):
    """torch.nn.EmbeddingBag over a table. `num_embeddings` may be None: any 64-bit id is a key, negative ones too.

    `table` names the table, which modules may share. `mode` is "sum", "mean" or "sqrtn" (the sum over the square root
    of the number of ids).
    """

    def __init__(self, num_embeddings, embedding_dim, *, mode="mean", table="embedding", rule=SGD(), init=Uniform(),
                 seed=0, include_last_offset=False, padding_idx=None):
        super().__init__(num_embeddings, embedding_dim, table, rule, init, seed, padding_idx)
        if mode not in ("sum", "mean", "sqrtn"):
            raise errors.InvalidArgumentError(f"mode '{mode}': there are sum, mean and sqrtn")
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input, offsets=None, per_sample_weights=None):
        keys = _keys(input)
        if per_sample_weights is not None:
            if self.mode != "sum":
                raise errors.InvalidArgumentError(f"per_sample_weights go with mode 'sum', not '{self.mode}'")
            if per_sample_weights.shape != input.shape:
                raise errors.InvalidArgumentError(f"per_sample_weights have the shape {tuple(per_sample_weights.shape)}, "
                                                  f"and the ids {tuple(input.shape)}")
        if input.dim() == 2:
            if offsets is not None:
                raise errors.InvalidArgumentError("offsets go with 1-D ids; 2-D ids are a bag in each row")
            bounds = torch.arange(input.shape[0] + 1) * input.shape[1]
        elif input.dim() == 1:
            if offsets is None:
                raise errors.InvalidArgumentError("1-D ids need offsets, where each bag begins")
            bounds = _keys(offsets)
            if not self.include_last_offset:
                bounds = torch.cat([bounds, torch.tensor([keys.numel()])])
        else:
            raise errors.InvalidArgumentError(f"ids have {input.dim()} dimensions; there may be 1 or 2")
        weights = per_sample_weights
        if self.padding_idx is not None:
            keys, bounds, weights = self._without_padding(keys, bounds, weights)
        return self._look_up(self.mode, keys, bounds, weights, bounds.numel() - 1, input.device)

    def _without_padding(self, keys, bounds, weights):
        keep = keys != self.padding_idx
        if bool(keep.all()):
            return keys, bounds, weights
        before = torch.cat([torch.zeros(1, dtype=torch.int64), torch.cumsum(keep.to(torch.int64), 0)])
        if int(bounds.min()) < 0 or int(bounds.max()) > keys.numel():
            raise errors.InvalidArgumentError(f"offsets beyond the {keys.numel()} ids")
        if weights is not None:
            weights = weights.reshape(-1)[keep.to(weights.device)]
        return keys[keep], before[bounds], weights


class Embedding(_Module):
    """torch.nn.Embedding over a table. `num_embeddings` may be None: any 64-bit id is a key, negative ones too."""

    def __init__(self, num_embeddings, embedding_dim, *, table="embedding", rule=SGD(), init=Uniform(), seed=0,
                 padding_idx=None):
        super().__init__(num_embeddings, embedding_dim, table, rule, init, seed, padding_idx)

    def forward(self, input):
        keys = _keys(input)
        samples = input.shape[0] if input.dim() else 1
        if self.padding_idx is None:
            out = self._look_up("none", keys, torch.tensor([0, keys.numel()]), None, samples, input.device)
            return out.reshape(*input.shape, self.embedding_dim)
        # A bag of one id, or of none for padding, which gives zeros and takes no gradient.
        keep = keys != self.padding_idx
        bounds = torch.cat([torch.zeros(1, dtype=torch.int64), torch.cumsum(keep.to(torch.int64), 0)])
        out = self._look_up("sum", keys[keep], bounds, None, samples, input.device)
        return out.reshape(*input.shape, self.embedding_dim)


def _tables_of(modules):
    found = {}
    for module in modules:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"wrap takes modules after the optimizer, not {type(module).__name__}")
        for part in module.modules():
            if isinstance(part, _Module):
                found[part.table.name] = part.table
    if not found:
        raise errors.InvalidArgumentError("wrap: there is no Embedding or EmbeddingBag of regattarec in the modules")
    return list(found.values())


class _Dense:
    """Dense parameters that live where the tables live. An optimizer's formula becomes the rule of their table."""

    def __init__(self, optimizer, modules):
        self.optimizer = optimizer
        self.groups = list(optimizer.param_groups)
        self.parameters = [p for group in self.groups for p in group["params"]]
        names = {id(p): name for module in modules for name, p in module.named_parameters()}
        self.names = [names.get(id(p), f"parameter{i}") for i, p in enumerate(self.parameters)]
        if len(set(self.names)) < len(self.names):
            self.names = [f"parameter{i}" for i in range(len(self.parameters))]
        for name, p in zip(self.names, self.parameters):
            if p.dtype != torch.float32:
                raise errors.InvalidArgumentError(f"dense='server': {name} is {p.dtype}; it must be torch.float32")

    def description(self):
        return {"parameters": [{"name": name, "shape": list(p.shape) or [1], "init": Constant(0.0).config()}
                               for name, p in zip(self.names, self.parameters)],
                "rule": dense_rule(self.optimizer)}

    def fill(self, job):
        """The first worker's values become everybody's."""
        values = torch.cat([p.detach().to("cpu").reshape(-1) for p in self.parameters])
        job.fleet.fill_dense(values)
        self.read(job)

    def read(self, job):
        values = torch.empty(sum(p.numel() for p in self.parameters))
        job.fleet.read_dense(values)
        self._put(torch.split(values, [p.numel() for p in self.parameters]))

    def refresh(self, job):
        """Takes the values of the next step."""
        job.pull([], True)
        offset, pieces = 0, []
        for p in self.parameters:
            piece = torch.empty(p.numel())
            job.steps.copy_dense(offset, piece)
            pieces.append(piece)
            offset += p.numel()
        self._put(pieces)

    def _put(self, pieces):
        with torch.no_grad():
            for p, piece in zip(self.parameters, pieces):
                p.copy_(piece.reshape(p.shape))

    def rate(self):
        """The optimizer's present learning rate."""
        rates = {float(group["lr"]) for group in self.groups}
        if len(rates) > 1:
            raise errors.InvalidArgumentError(f"dense='server': the parameter groups have the rates {sorted(rates)}; "
                                              "one rule updates them all, with one")
        return rates.pop()

    def gradients(self, factor, samples, rows):
        """(offset, gradient as a sum over the samples) of each; none if neither a parameter nor a row has one."""
        offset, pieces = 0, []
        if not rows and all(p.grad is None or not p.grad.any() for p in self.parameters):
            return pieces  # no backward: zeros would be an update, of a rule with a memory
        for group in self.groups:
            for p in group["params"]:
                grad = torch.zeros(p.numel()) if p.grad is None else p.grad.detach().to("cpu", torch.float32).reshape(-1)
                grad = grad * factor
                if group.get("weight_decay"):
                    grad = grad + p.detach().to("cpu").reshape(-1) * (group["weight_decay"] * samples)
                pieces.append((offset, grad))
                offset += p.numel()
        return pieces


# Optimizers whose formula a server has: what must be so, and the rule.
def _sgd(group):
    if group["momentum"] == 0:
        return {"name": "sgd"}, ()
    return {"name": "momentum", "momentum": group["momentum"], "nesterov": bool(group["nesterov"])}, ("dampening",)


def _adam(group):
    beta1, beta2 = group["betas"]
    return {"name": "adam", "beta1": beta1, "beta2": beta2, "epsilon": group["eps"]}, (
        "amsgrad", "decoupled_weight_decay")


def _adagrad(group):
    return {"name": "adagrad", "epsilon": group["eps"]}, ("lr_decay", "initial_accumulator_value")


_RULES = {torch.optim.SGD: _sgd, torch.optim.Adam: _adam, torch.optim.Adagrad: _adagrad}
_SERVED = "SGD (with momentum), Adam and Adagrad"


def dense_rule(optimizer):
    """The rule of a table of dense parameters that does what `optimizer` does."""
    make = _RULES.get(type(optimizer))
    if make is None:
        raise errors.InvalidArgumentError(
            f"dense='server': servers cannot do what {type(optimizer).__name__} does; they have {_SERVED}. "
            "dense='local' keeps the dense parameters in this process, with any optimizer")
    rules = []
    for group in optimizer.param_groups:
        rule, unset = make(group)
        for name in (*unset, "maximize"):
            if group.get(name):
                raise errors.InvalidArgumentError(
                    f"dense='server': {type(optimizer).__name__} with {name}={group[name]!r} is not what servers do")
        rules.append(rule | {"learning_rate": float(group["lr"])})
    if any(rule != rules[0] for rule in rules):
        raise errors.InvalidArgumentError(
            "dense='server': all parameter groups need the same settings, for one rule updates them all")
    return rules[0]


def wrap(optimizer, *modules, dense=None):
    """Makes `optimizer.step()` update the tables of `modules` too, and returns the optimizer itself.

    Each table becomes a group of `optimizer.param_groups`, so that gradient scalers find its gradients. The rule of the
    table updates it; the optimizer does not.

    `dense` says where the other parameters are. "local": in this process, updated by the optimizer; alone, or with
    DistributedDataParallel. "server": with the tables, updated by a rule with the optimizer's formula and its present
    learning rate; all workers begin with the first one's values. The default is "server" for several workers without
    a process group, else "local".
    """
    tables = _tables_of(modules)
    if getattr(optimizer, "_regatta_tables", None) is not None:
        raise errors.FailedPreconditionError("wrap: the optimizer was wrapped before; name all modules in one call")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise errors.InvalidArgumentError("wrap: LBFGS takes several looks at a loss in one step; tables make one")
    job = _job.current()
    if dense is None:
        grouped = torch.distributed.is_available() and torch.distributed.is_initialized()
        dense = "server" if job.fleet.worker_num > 1 and not grouped else "local"
    if dense not in ("local", "server"):
        raise errors.InvalidArgumentError(f"dense '{dense}': there are local and server")
    served = _Dense(optimizer, modules) if dense == "server" else None
    job.join(None if served is None else served.description())
    if served is not None:
        served.fill(job)
    for table in tables:
        optimizer.add_param_group({"params": [table.rows], "lr": table.rule.lr, "regatta_table": table.name})
    optimizer._regatta_tables, optimizer._regatta_dense = tables, served
    optimizer.step = types.MethodType(_step_of(optimizer, tables, served), optimizer)
    optimizer.zero_grad = types.MethodType(_zero_grad_of(optimizer, tables), optimizer)
    optimizer._step_supports_amp_scaling = True  # a gradient scaler calls step() always, and says what to leave out
    return optimizer


def _zero_grad_of(optimizer, tables):
    inner = optimizer.zero_grad

    def zero_grad(self, *args, **kwargs):
        inner(*args, **kwargs)
        for table in tables:
            table.rows.grad = None  # zeros would be an update of the rows

    return zero_grad


def _step_of(optimizer, tables, served):
    inner, scales = optimizer.step, getattr(optimizer, "_step_supports_amp_scaling", False)

    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        job = _job.current()
        found = getattr(self, "found_inf", None)
        scale = getattr(self, "grad_scale", None)
        rates = {group["regatta_table"]: float(group["lr"]) for group in self.param_groups if "regatta_table" in group}
        taken = [(lookup, grad, rates[table.name]) for table in tables for lookup, grad in table.take()]
        n = _step.take()
        skipped = found is not None and bool(found)
        unscale = 1.0 if scale is None else 1.0 / float(scale)
        factor = n * unscale
        grads = [] if skipped else [(lookup, grad.mul(factor), rate) for lookup, grad, rate in taken]
        if served is not None:
            dense = [] if skipped else served.gradients(factor, n, bool(grads))
            job.commit(n if grads or dense else 0, grads, dense, served.rate() if dense else None)
            served.refresh(job)
            return loss
        job.commit(n if grads else 0, grads)
        if not skipped:
            if scale is not None and not scales:
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            p.grad.mul_(unscale)
            inner()
        return loss

    return step


def step(n=None):
    """Says how many samples the present step's loss is the mean of, if it is not the number of bags of its first lookup."""
    if not isinstance(n, int) or n < 1:
        raise errors.InvalidArgumentError(f"n: {n!r} is not a whole number above 0")
    _step.given = n


def init(mode=None, geo_step=None):
    """How workers and servers work together: sync, async (the default), half_async or geo. Before the first lookup."""
    _job.current().use(mode, geo_step)


def save(path, model=None, optimizer=None, epoch=0):
    """Saves all tables with the state of their rules, and the states of `model` and `optimizer`, to a folder.

    All workers call it; the first one writes. `regatta checkpoint ls` shows the save, servers of any number load it.
    """
    blobs = {"torch/epoch": tensors.dump(epoch)}
    if model is not None:
        blobs["torch/model"] = tensors.dump(dict(model.state_dict()))
    if optimizer is not None:
        blobs["torch/optimizer"] = tensors.dump(optimizer.state_dict())
    _job.current().save(str(path), epoch, blobs)


def load(path, model=None, optimizer=None):
    """Loads what save wrote: the tables, and `model` and `optimizer` where they are named. Gives the epoch.

    It comes after wrap and before the first lookup. All workers call it, and read the folder.
    """
    job = _job.current()
    job.load(str(path))
    blobs = _core.read_blobs(str(path))
    for name, target in (("model", model), ("optimizer", optimizer)):
        if target is None:
            continue
        if f"torch/{name}" not in blobs:
            raise errors.NotFoundError(f"{path} holds no state of a {name}: it was saved without {name}=")
        target.load_state_dict(tensors.load(blobs[f"torch/{name}"]))
    served = getattr(optimizer, "_regatta_dense", None)
    if served is not None:
        served.read(job)
    return tensors.load(blobs["torch/epoch"]) if "torch/epoch" in blobs else 0


def stop():
    """This worker is done. It is called when the process ends, too."""
    _job.current().stop()
