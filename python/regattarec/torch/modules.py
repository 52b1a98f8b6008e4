"""PyTorch's embedding modules over tables."""
import typing
from collections.abc import Iterable, Iterator, Set

import numpy
import torch

from regattarec import arguments, errors
from regattarec import job as _job
from regattarec.rules import SGD, Init, Rule, Uniform
from regattarec.torch.arrays import has_values, integers
from regattarec.torch.call import Call, ahead
from regattarec.torch.table import Table, declare

Self = typing.TypeVar("Self", bound="Module")
Ids = typing.Union[torch.Tensor, numpy.ndarray[typing.Any, numpy.dtype[typing.Any]], Iterable[int]]
Vectors = typing.Union[torch.Tensor, numpy.ndarray[typing.Any, numpy.dtype[typing.Any]], Iterable[Iterable[float]]]

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def keys_of(ids: torch.Tensor, name: str = "ids") -> torch.Tensor:
    """The ids as int64 on the CPU, in one piece."""
    if not isinstance(ids, torch.Tensor):
        raise TypeError(f"{name} must be a tensor of whole numbers, not {type(ids).__name__}")
    if ids.dtype not in _INTEGERS:
        raise errors.InvalidArgumentError(f"{name} are {ids.dtype}; they must be whole numbers, for instance torch.int64")
    has_values(ids, name)
    return integers(ids)


def _tensor(name: str, given: typing.Any) -> torch.Tensor:
    """As a tensor. Numbers of 64 bits without a sign keep their bit pattern."""
    if isinstance(given, torch.Tensor):
        has_values(given, name)
        return given.detach()
    try:
        array = numpy.ascontiguousarray(list(given) if isinstance(given, (Iterator, Set)) else given)
        if array.dtype == numpy.uint64:
            array = array.view(numpy.int64)
        elif not array.size:
            array = array.astype(numpy.int64)
        if array.dtype.kind in "biufc":
            return torch.as_tensor(array)
        reason = "these are no numbers, or some of more than 64 bits"
    except (TypeError, ValueError, RuntimeError) as error:
        reason = str(error)
    raise errors.InvalidArgumentError(f"{name}: {arguments.shown(given)} cannot become a tensor: {reason}")


def listed_keys(given: Ids) -> torch.Tensor:
    """Keys one after another, of a tensor, an array or a list."""
    keys = _tensor("keys", given)
    if keys.dim() != 1:
        raise errors.InvalidArgumentError(f"keys have {keys.dim()} dimensions; a list of keys has 1")
    return keys_of(keys, "keys")


class Module(torch.nn.Module):
    """What Embedding and EmbeddingBag have in common."""

    num_embeddings: int | None
    embedding_dim: int
    padding_idx: int | None
    table: Table
    frozen: bool

    def __init__(self, num_embeddings: int | None, embedding_dim: int, table: str | None, rule: Rule, init: Init, seed: int,
                 padding_idx: int | None) -> None:
        super().__init__()
        if num_embeddings is not None:
            num_embeddings = arguments.whole("num_embeddings", num_embeddings, 1, note=", nor None, which is no bound")
        if padding_idx is not None:
            padding_idx = arguments.whole("padding_idx", padding_idx, -arguments.INT64 - 1, note=", nor None")
        embedding_dim = arguments.whole("embedding_dim", embedding_dim, 1, arguments.INT32)
        seed = arguments.whole("seed", seed, 0, arguments.UINT64)
        if padding_idx is not None and num_embeddings is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise errors.OutOfRangeError(f"padding_idx: {padding_idx} is not within num_embeddings, which is {num_embeddings}")
            padding_idx %= num_embeddings  # -1 is the last one, as PyTorch has it
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.table = declare(table, embedding_dim, rule, init, seed)
        self.frozen = False
        self._fills_padding = False  # the padding has a row, which `fill` has put there

    def learns(self) -> bool:
        """Whether a lookup is one of training."""
        return self.training and not self.frozen and torch.is_grad_enabled()

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """False freezes the rows: lookups read them as evaluation does, and no step changes them."""
        self.frozen = not arguments.flag("requires_grad", requires_grad)
        return self

    def fill(self, keys: Ids, vectors: Vectors) -> None:
        """Puts vectors under keys, as rows that nothing was learnt of yet; other rows stay as they are.

        It comes before the first lookup. All workers call it, and the first one's vectors count. Tensors are read when
        the job begins: leave their values as they are until the first lookup, or give a clone.
        """
        rows, found = _tensor("vectors", vectors), listed_keys(keys)
        if rows.is_complex():
            raise errors.InvalidArgumentError(f"vectors are {rows.dtype}; they must be real numbers")
        if rows.shape != (found.numel(), self.embedding_dim):
            raise errors.InvalidArgumentError(
                f"table '{self.table.name}': {found.numel()} keys of {self.embedding_dim} floats need vectors of the shape "
                f"{(found.numel(), self.embedding_dim)}, not {tuple(rows.shape)}")
        self._check_bound(found)
        _job.current().fill(self.table.index, found, rows.to("cpu", torch.float32).contiguous())
        if self.padding_idx is not None and bool((found == self.padding_idx).any()):
            self._fills_padding = True

    @classmethod
    def from_pretrained(cls: type[Self], embeddings: Vectors, keys: Ids | None = None, *, freeze: bool = True,
                        num_embeddings: int | None = None, **options: typing.Any) -> Self:
        """As torch.nn's: a module over a table that begins with these vectors, under `keys` (0, 1, … without).

        With `freeze` they are not trained. The other arguments are those of the module. The vector of `padding_idx` is read as
        the others are, and takes no gradient; an EmbeddingBag leaves padding out.

            >>> words = Embedding.from_pretrained([[1.0, 2.0], [3.0, 4.0]], freeze=False, padding_idx=1)
            >>> words(torch.tensor([0, 1])).tolist()
            [[1.0, 2.0], [3.0, 4.0]]
        """
        if isinstance(keys, (bool, numpy.bool_)):
            raise TypeError(f"keys: {keys!r} is no list of keys; freeze goes by its name here: from_pretrained(vectors, freeze={keys!r})")
        rows = _tensor("embeddings", embeddings)
        if rows.dim() != 2:
            raise errors.InvalidArgumentError(f"embeddings have {rows.dim()} dimensions; a row each are 2")
        frozen = arguments.flag("freeze", freeze)
        found = torch.arange(len(rows)) if keys is None else listed_keys(keys)
        padding = options.get("padding_idx")
        if keys is None and num_embeddings is None and padding is not None:  # an index of the vectors, as PyTorch has it
            padding = arguments.whole("padding_idx", padding, -arguments.INT64 - 1, note=", nor None")
            if not -len(rows) <= padding < len(rows):
                raise errors.OutOfRangeError(f"padding_idx: {padding} is not within the {len(rows)} embeddings")
            options["padding_idx"] = padding % len(rows)
        module = cls(num_embeddings, rows.shape[1], **options)
        module.fill(found, rows)
        return module.requires_grad_(not frozen)

    def _check_bound(self, keys: torch.Tensor) -> None:
        if self.num_embeddings is not None and keys.numel() and (
                int(keys.min()) < 0 or int(keys.max()) >= self.num_embeddings):
            raise errors.OutOfRangeError(
                f"table '{self.table.name}': ids from {int(keys.min())} to {int(keys.max())}, and num_embeddings is "
                f"{self.num_embeddings}; None is no bound")

    def call(self, *given: typing.Any) -> Call:
        """What forward does with these arguments, to be pulled."""
        raise NotImplementedError

    @staticmethod
    def whole(given: typing.Any) -> tuple[typing.Any, ...]:
        """The arguments of forward, with those that are left out."""
        raise NotImplementedError

    def _kept(self, keys: torch.Tensor) -> torch.Tensor:
        """Which keys are no padding."""
        assert self.padding_idx is not None
        return torch.ne(keys, self.padding_idx)

    def _call(self, mode: str, keys: torch.Tensor, bounds: torch.Tensor, weights: torch.Tensor | None, samples: int,
              shape: tuple[int, ...], device: torch.device) -> Call:
        if self.num_embeddings is not None:
            self._check_bound(keys)
        return Call(self.table, mode, keys, bounds, weights, samples, shape, device, self.learns())

    def _result(self, given: tuple[typing.Any, ...]) -> torch.Tensor:
        """Of the call with these arguments."""
        call = ahead.take(self, given) if self.learns() else None
        if call is None:
            call = self.call(*given)
            _job.current().pull(call.targets, call.train)
        return call.result()

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, table='{self.table.name}', rule={self.table.rule}"


def freeze(*modules: torch.nn.Module, frozen: bool = True) -> None:
    """Freezes the rows of all embeddings in the modules, as their requires_grad_(False) does. The rest is left alone.

        >>> items = Embedding.from_pretrained([[1.0, 2.0]], keys=[42], freeze=False)
        >>> freeze(items)
        >>> items(torch.tensor([42])).tolist()
        [[1.0, 2.0]]
    """
    frozen = arguments.flag("frozen", frozen)
    for module in modules:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"modules: freeze takes torch.nn.Modules, not {type(module).__name__}")
    for module in modules:
        for part in module.modules():
            if isinstance(part, Module):
                part.frozen = frozen


class EmbeddingBag(Module):
    """torch.nn.EmbeddingBag over a table. `num_embeddings` may be None: any 64-bit id is a key, negative ones too.

    `table` names the table, which modules may share. `mode` is "sum", "mean" or "sqrtn" (the sum over the square root
    of the number of ids).

        >>> from regattarec.torch import Constant
        >>> slots = EmbeddingBag(None, 2, mode="sum", init=Constant(0.5))
        >>> slots(torch.tensor([7, -3, 7]), torch.tensor([0, 2])).tolist()     # bags of [7, -3] and of [7]
        [[1.0, 1.0], [0.5, 0.5]]
    """

    mode: str
    include_last_offset: bool

    def __init__(self, num_embeddings: int | None, embedding_dim: int, *,
                 mode: typing.Literal["sum", "mean", "sqrtn"] = "mean", table: str | None = None, rule: Rule = SGD(),
                 init: Init = Uniform(), seed: int = 0, include_last_offset: bool = False,
                 padding_idx: int | None = None) -> None:
        pooling = arguments.choice("mode", mode, ("sum", "mean", "sqrtn"))
        include_last_offset = arguments.flag("include_last_offset", include_last_offset)
        super().__init__(num_embeddings, embedding_dim, table, rule, init, seed, padding_idx)
        self.mode, self.include_last_offset = pooling, include_last_offset

    if typing.TYPE_CHECKING:
        def __call__(self, input: torch.Tensor, offsets: torch.Tensor | None = None,
                     per_sample_weights: torch.Tensor | None = None) -> torch.Tensor: ...

    def forward(self, input: torch.Tensor, offsets: torch.Tensor | None = None,
                per_sample_weights: torch.Tensor | None = None) -> torch.Tensor:
        return self._result((input, offsets, per_sample_weights))

    @staticmethod
    def whole(given: typing.Any) -> tuple[typing.Any, ...]:
        return (*given, *[None] * (3 - len(given)))

    def call(self, input: torch.Tensor, offsets: torch.Tensor | None = None,
             per_sample_weights: torch.Tensor | None = None) -> Call:
        keys = keys_of(input)
        if per_sample_weights is not None:
            if not isinstance(per_sample_weights, torch.Tensor):
                raise TypeError(f"per_sample_weights must be a tensor, not {type(per_sample_weights).__name__}")
            has_values(per_sample_weights, "per_sample_weights")
            if per_sample_weights.is_complex():
                raise errors.InvalidArgumentError(f"per_sample_weights are {per_sample_weights.dtype}; they must be real numbers")
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
            bounds = keys_of(offsets, "offsets")
            if offsets.dim() != 1:
                raise errors.InvalidArgumentError(f"offsets have {offsets.dim()} dimensions; they have 1, with a number for each bag")
            if not self.include_last_offset:
                bounds = torch.cat([bounds, torch.tensor([keys.numel()])])
        else:
            raise errors.InvalidArgumentError(f"ids have {input.dim()} dimensions; there may be 1 or 2")
        weights = per_sample_weights
        if self.padding_idx is not None:
            keys, bounds, weights = self._without_padding(keys, bounds, weights)
        bags = bounds.numel() - 1
        return self._call(self.mode, keys, bounds, weights, bags, (bags, self.embedding_dim), input.device)

    def _without_padding(self, keys: torch.Tensor, bounds: torch.Tensor, weights: torch.Tensor | None) -> tuple[
            torch.Tensor, torch.Tensor, torch.Tensor | None]:
        keep = self._kept(keys)
        if bool(keep.all()):
            return keys, bounds, weights
        if not bounds.numel() or int(bounds[0]) != 0 or int(bounds[-1]) != keys.numel() or bool((bounds[1:] < bounds[:-1]).any()):
            return keys, bounds, None  # the lookup says which offset is wrong
        before = torch.cat([torch.zeros(1, dtype=torch.int64), torch.cumsum(keep.to(torch.int64), 0)])
        if weights is not None:
            weights = weights.reshape(-1)[keep.to(weights.device)]
        return keys[keep], before[bounds], weights


class Embedding(Module):
    """torch.nn.Embedding over a table. `num_embeddings` may be None: any 64-bit id is a key, negative ones too.

        >>> from regattarec.torch import Constant
        >>> users = Embedding(None, 2, init=Constant(0.5), padding_idx=0)
        >>> users(torch.tensor([[12345678901, 0]])).tolist()
        [[[0.5, 0.5], [0.0, 0.0]]]
    """

    def __init__(self, num_embeddings: int | None, embedding_dim: int, *, table: str | None = None, rule: Rule = SGD(),
                 init: Init = Uniform(), seed: int = 0, padding_idx: int | None = None) -> None:
        super().__init__(num_embeddings, embedding_dim, table, rule, init, seed, padding_idx)

    if typing.TYPE_CHECKING:
        def __call__(self, input: torch.Tensor) -> torch.Tensor: ...

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._result((input,))

    @staticmethod
    def whole(given: typing.Any) -> tuple[typing.Any, ...]:
        return tuple(given)

    def call(self, input: torch.Tensor) -> Call:
        keys = keys_of(input)
        samples = input.shape[0] if input.dim() else 1
        shape = (*input.shape, self.embedding_dim)
        if self.padding_idx is None:
            return self._call("none", keys, torch.tensor([0, keys.numel()]), None, samples, shape, input.device)
        # A bag of one id, or of none for padding, which takes no gradient and gives zeros, or the row that it was given.
        keep = self._kept(keys)
        bounds = torch.cat([torch.zeros(1, dtype=torch.int64), torch.cumsum(keep.to(torch.int64), 0)])
        call = self._call("sum", keys[keep], bounds, None, samples, shape, input.device)
        if self._fills_padding and not bool(keep.all()):
            call.put_padding(self.padding_idx, ~keep)
        return call
