"""PyTorch's embedding modules over tables."""
import torch

from regattarec import errors
from regattarec import job as _job
from regattarec.rules import SGD, Uniform
from regattarec.torch.arrays import integers
from regattarec.torch.call import Call, ahead
from regattarec.torch.table import declare

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def keys_of(ids):
    """The ids as int64 on the CPU, in one piece."""
    if not isinstance(ids, torch.Tensor):
        raise TypeError(f"ids must be a tensor of whole numbers, not {type(ids).__name__}")
    if ids.dtype not in _INTEGERS:
        raise errors.InvalidArgumentError(f"ids are {ids.dtype}; they must be whole numbers, for instance torch.int64")
    return integers(ids)


class Module(torch.nn.Module):
    def __init__(self, num_embeddings, embedding_dim, table, rule, init, seed, padding_idx):
        super().__init__()
        if num_embeddings is not None and (not isinstance(num_embeddings, int) or num_embeddings < 1):
            raise errors.InvalidArgumentError(
                f"num_embeddings: {num_embeddings!r} is neither None (no bound) nor a whole number above 0")
        if padding_idx is not None and (not isinstance(padding_idx, int) or isinstance(padding_idx, bool)):
            raise errors.InvalidArgumentError(f"padding_idx: {padding_idx!r} is neither None nor a whole number")
        if padding_idx is not None and num_embeddings is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise errors.OutOfRangeError(f"padding_idx: {padding_idx} is not within num_embeddings, which is {num_embeddings}")
            padding_idx %= num_embeddings  # -1 is the last one, as PyTorch has it
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.table = declare(table, embedding_dim, rule, init, seed)
        self.frozen = False

    def learns(self):
        """Whether a lookup is one of training."""
        return self.training and not self.frozen and torch.is_grad_enabled()

    def requires_grad_(self, requires_grad=True):
        """False freezes the rows: lookups read them as evaluation does, and no step changes them."""
        self.frozen = not requires_grad
        return self

    def fill(self, keys, vectors):
        """Puts vectors under keys, as rows that nothing was learnt of yet; other rows stay as they are.

        It comes before the first lookup. All workers call it, and the first one's vectors count.
        """
        vectors = torch.as_tensor(vectors).detach().to("cpu", torch.float32).contiguous()
        keys = keys_of(torch.as_tensor(keys))
        if vectors.dim() != 2 or vectors.shape != (keys.numel(), self.embedding_dim):
            raise errors.InvalidArgumentError(
                f"table '{self.table.name}': {keys.numel()} keys of {self.embedding_dim} floats need vectors of the shape "
                f"{(keys.numel(), self.embedding_dim)}, not {tuple(vectors.shape)}")
        self._check_bound(keys)
        _job.current().fill(self.table.index, keys, vectors)

    @classmethod
    def from_pretrained(cls, embeddings, keys=None, *, freeze=True, num_embeddings=None, **options):
        """As torch.nn's: a module over a table that begins with these vectors, under `keys` (0, 1, … without).

        With `freeze` they are not trained. The other arguments are those of the module.
        """
        embeddings = torch.as_tensor(embeddings)
        if embeddings.dim() != 2:
            raise errors.InvalidArgumentError(f"embeddings have {embeddings.dim()} dimensions; a row each are 2")
        module = cls(num_embeddings, embeddings.shape[1], **options)
        module.fill(torch.arange(len(embeddings)) if keys is None else keys, embeddings)
        return module.requires_grad_(not freeze)

    def _check_bound(self, keys):
        if self.num_embeddings is not None and keys.numel() and (
                int(keys.min()) < 0 or int(keys.max()) >= self.num_embeddings):
            raise errors.OutOfRangeError(
                f"table '{self.table.name}': ids from {int(keys.min())} to {int(keys.max())}, and num_embeddings is "
                f"{self.num_embeddings}; None is no bound")

    def _call(self, mode, keys, bounds, weights, samples, shape, device):
        if self.num_embeddings is not None:
            self._check_bound(keys)
        return Call(self.table, mode, keys, bounds, weights, samples, shape, device, self.learns())

    def _result(self, arguments):
        """Of the call with these arguments."""
        call = ahead.take(self, arguments) if self.learns() else None
        if call is None:
            call = self.call(*arguments)
            _job.current().pull([call.target], call.train)
        return call.result()

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}, table='{self.table.name}', rule={self.table.rule}"


def freeze(*modules, frozen=True):
    """Freezes the rows of all embeddings in the modules, as their requires_grad_(False) does. The rest is left alone."""
    for module in modules:
        for part in module.modules():
            if isinstance(part, Module):
                part.frozen = frozen


class EmbeddingBag(Module):
    """torch.nn.EmbeddingBag over a table. `num_embeddings` may be None: any 64-bit id is a key, negative ones too.

    `table` names the table, which modules may share. `mode` is "sum", "mean" or "sqrtn" (the sum over the square root
    of the number of ids).
    """

    def __init__(self, num_embeddings, embedding_dim, *, mode="mean", table=None, rule=SGD(), init=Uniform(),
                 seed=0, include_last_offset=False, padding_idx=None):
        super().__init__(num_embeddings, embedding_dim, table, rule, init, seed, padding_idx)
        if mode not in ("sum", "mean", "sqrtn"):
            raise errors.InvalidArgumentError(f"mode '{mode}': there are sum, mean and sqrtn")
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input, offsets=None, per_sample_weights=None):
        return self._result((input, offsets, per_sample_weights))

    @staticmethod
    def whole(arguments):
        """The arguments of forward, with those that are left out."""
        return (*arguments, *[None] * (3 - len(arguments)))

    def call(self, input, offsets=None, per_sample_weights=None):
        keys = keys_of(input)
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
            bounds = keys_of(offsets)
            if not self.include_last_offset:
                bounds = torch.cat([bounds, torch.tensor([keys.numel()])])
        else:
            raise errors.InvalidArgumentError(f"ids have {input.dim()} dimensions; there may be 1 or 2")
        weights = per_sample_weights
        if self.padding_idx is not None:
            keys, bounds, weights = self._without_padding(keys, bounds, weights)
        bags = bounds.numel() - 1
        return self._call(self.mode, keys, bounds, weights, bags, (bags, self.embedding_dim), input.device)

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

    def __init__(self, num_embeddings, embedding_dim, *, table=None, rule=SGD(), init=Uniform(), seed=0,
                 padding_idx=None):
        super().__init__(num_embeddings, embedding_dim, table, rule, init, seed, padding_idx)

    def forward(self, input):
        return self._result((input,))

    @staticmethod
    def whole(arguments):
        return tuple(arguments)

    def call(self, input):
        keys = keys_of(input)
        samples = input.shape[0] if input.dim() else 1
        shape = (*input.shape, self.embedding_dim)
        if self.padding_idx is None:
            return self._call("none", keys, torch.tensor([0, keys.numel()]), None, samples, shape, input.device)
        # A bag of one id, or of none for padding, which gives zeros and takes no gradient.
        keep = keys != self.padding_idx
        bounds = torch.cat([torch.zeros(1, dtype=torch.int64), torch.cumsum(keep.to(torch.int64), 0)])
        return self._call("sum", keys[keep], bounds, None, samples, shape, input.device)
