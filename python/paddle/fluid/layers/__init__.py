"""Layers: each appends operators to the present program and gives the variable of their result."""
from paddle._missing import refuse_missing
from paddle.fluid.layers import io, loss, metric, nn, ops, sequence, tensor
from paddle.fluid.layers.io import *  # noqa: F403
from paddle.fluid.layers.loss import *  # noqa: F403
from paddle.fluid.layers.metric import *  # noqa: F403
from paddle.fluid.layers.nn import *  # noqa: F403
from paddle.fluid.layers.ops import *  # noqa: F403
from paddle.fluid.layers.sequence import *  # noqa: F403
from paddle.fluid.layers.tensor import *  # noqa: F403

__all__ = [*io.__all__, *loss.__all__, *metric.__all__, *nn.__all__, *ops.__all__, *sequence.__all__, *tensor.__all__]

__getattr__ = refuse_missing(__name__, globals())
