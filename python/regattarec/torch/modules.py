"""PyTorch's embedding modules over tables."""
import torch

from regattarec import _core, errors
from regattarec import job as _job
from regattarec.rules import SGD, Uniform
from regattarec.torch.table import current as step
from regattarec.torch.table import declare

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, anchor, weights, table, lookup, out, rows):
        ctx.table, ctx.lookup, ctx.rows = table, lookup, rows
        ctx.weights_like = weights
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        step.fresh = True
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


class Module(torch.nn.Module):
    def __init__(self, num_embeddings, embedding_dim, table, rule, init, seed, padding_idx):
        super().__init__()
        if num_embeddings is not None and (not isinstance(num_embeddings, int) or num_embeddings < 1):
            raise errors.InvalidArgumentError(
                f"num_embeddings: {num_embeddings!r} is neither None (no bound) nor a whole number above 0")
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.table = declare(table, embedding_dim, rule, init, seed)
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
            step.count(samples)
            out = _Lookup.apply(self._anchor, weights, self.table, lookup, out, rows)
        return out.to(device)

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}, table='{self.table.name}', rule={self.table.rule}"


class EmbeddingBag(Module):
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


class Embedding(Module):
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
