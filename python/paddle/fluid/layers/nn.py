"""Layers with parameters, and what stands beside them."""
from collections.abc import Sequence
from typing import Any

from paddle.fluid.framework import Variable, builder, dtype_name, native_of, view
from paddle.fluid.layers.apply import apply
from paddle.fluid.param_attr import described

__all__ = ["fc", "embedding", "dropout", "cos_sim", "matmul", "mul", "topk"]


def fc(input: Variable | Sequence[Variable], size: int, num_flatten_dims: int = 1, param_attr: Any = None, bias_attr: Any = None,
       act: str | None = None, name: str | None = None) -> Variable:
    """act(sum of each input times its weights, plus a bias)."""
    inputs = list(input) if isinstance(input, (list, tuple)) else [input]
    weights = list(param_attr) if isinstance(param_attr, (list, tuple)) else [param_attr]
    made = builder("layers.fc").fc(
        [native_of("input", each, "fc") for each in inputs], size=size, num_flatten_dims=num_flatten_dims,
        weights=[described("param_attr", each) or {} for each in weights], bias=described("bias_attr", bias_attr),
        activation=act or "", name=name or "")
    return view(made)


def embedding(input: Variable, size: Sequence[int], is_sparse: bool = False, is_distributed: bool = False,
              padding_idx: int | None = None, param_attr: Any = None, dtype: Any = "float32") -> Variable:
    """Row input[i] of a table of size [rows, width]. The last extent of `input` is 1."""
    return rows(False, input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


def rows(as_they_are: bool, input: Variable, size: Sequence[int], is_sparse: bool, is_distributed: bool,
         padding_idx: int | None, param_attr: Any, dtype: Any) -> Variable:
    """Both kinds of embedding: ids as they are, or with a last extent of 1."""
    if is_distributed:
        raise NotImplementedError("layers.embedding: is_distributed=True needs tables on servers, which programs cannot use yet; "
                                  "regattarec.torch has them for PyTorch models")
    made = builder("layers.embedding").embedding(
        native_of("input", input, "embedding"), list(size), is_sparse=bool(is_sparse), padding_idx=padding_idx,
        weight=described("param_attr", param_attr), dtype=dtype_name(dtype), as_they_are=as_they_are)
    return view(made)


def dropout(x: Variable, dropout_prob: float, is_test: bool = False, seed: int | None = None, name: str | None = None,
            dropout_implementation: str = "downgrade_in_infer") -> Variable:
    """Zeros in place of a part of the elements, while training."""
    made = builder("layers.dropout").dropout(
        native_of("x", x, "dropout"), probability=float(dropout_prob), is_test=bool(is_test), seed=seed,
        implementation=dropout_implementation, name=name or "")
    return view(made)


def cos_sim(X: Variable, Y: Variable) -> Variable:
    """The cosine of the angle between rows of X and Y."""
    return apply("cos_sim", "cos_sim", {"X": X, "Y": Y}, {})


def matmul(x: Variable, y: Variable, transpose_x: bool = False, transpose_y: bool = False, alpha: float = 1.0,
           name: str | None = None) -> Variable:
    """alpha times the product of matrices, for each of a batch."""
    return apply("matmul", "matmul", {"X": x, "Y": y}, {"transpose_X": bool(transpose_x), "transpose_Y": bool(transpose_y),
                                                        "alpha": float(alpha)}, name=name)


def mul(x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None) -> Variable:
    """The product of x and y as matrices: extents from num_col_dims on are the columns."""
    return apply("mul", "mul", {"X": x, "Y": y}, {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}, name=name)


def topk(input: Variable, k: int, name: str | None = None) -> tuple[Variable, Variable]:
    """The k largest of the last extent, and their places."""
    layer = builder("layers.topk")
    values, indices = layer.variable("top_k.tmp", input.dtype), layer.variable("top_k.tmp", "int64")
    layer.append("top_k", {"X": [native_of("input", input, "topk")]}, {"Out": [values], "Indices": [indices]}, {"k": k})
    return view(values), view(indices)
