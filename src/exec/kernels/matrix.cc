// Products of matrices, and rows of one by ids.
#include <algorithm>

#include "exec/kernel_table.h"
#include "exec/tensor_type.h"
#include "program/shape.h"

namespace regatta::exec {

namespace {

torch::Tensor Matrix(const torch::Tensor& tensor, int64_t rows_to) {
  if (tensor.dim() == 2 && rows_to == 1) return tensor;
  const auto [rows, columns] = program::AsMatrix(tensor.sizes().vec(), static_cast<size_t>(rows_to));
  return tensor.reshape({rows, columns});
}

absl::Status Mul(KernelCall& call) {
  const torch::Tensor &x = call.In("X"), &y = call.In("Y");
  const int64_t x_rows = call.Int("x_num_col_dims"), y_rows = call.Int("y_num_col_dims");
  if (x_rows < 1 || x_rows >= x.dim() || y_rows < 1 || y_rows >= y.dim()) {
    return absl::InvalidArgumentError(absl::StrCat("X is ", TensorText(x), " and Y is ", TensorText(y),
                                                   ": x_num_col_dims ", x_rows, " and y_num_col_dims ", y_rows,
                                                   " must leave them a row and a column"));
  }
  const torch::Tensor out = at::mm(Matrix(x, x_rows), Matrix(y, y_rows));
  if (x.dim() == 2 && y.dim() == 2) return call.Give(out);
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().begin() + x_rows);
  shape.insert(shape.end(), y.sizes().begin() + y_rows, y.sizes().end());
  return call.Give(out.reshape(shape));
}

absl::Status MatMul(KernelCall& call) {
  torch::Tensor x = call.In("X"), y = call.In("Y");
  const bool row = x.dim() == 1, column = y.dim() == 1;
  // A vector is a row of X and a column of Y, and is turned round like a matrix.
  if (row) x = x.unsqueeze(call.Bool("transpose_X") ? 1 : 0);
  if (column) y = y.unsqueeze(call.Bool("transpose_Y") ? 0 : 1);
  if (call.Bool("transpose_X")) x = x.transpose(-1, -2);
  if (call.Bool("transpose_Y")) y = y.transpose(-1, -2);
  torch::Tensor out = at::matmul(x, y);
  if (column) out = out.squeeze(-1);
  if (row) out = out.squeeze(column ? -1 : -2);
  if (out.dim() == 0) out = out.reshape({1});
  if (const double alpha = call.Float("alpha"); alpha != 1) out = out * alpha;
  return call.Give(out);
}

absl::Status Bmm(KernelCall& call) { return call.Give(at::bmm(call.In("X"), call.In("Y"))); }
absl::Status Dot(KernelCall& call) { return call.Give((call.In("X") * call.In("Y")).sum(-1, /*keepdim=*/true)); }
absl::Status Addmm(KernelCall& call) {
  return call.Give(
      "Out", at::addmm(call.In("Input"), call.In("X"), call.In("Y"), call.Float("Beta"), call.Float("Alpha")), "Input");
}

// OK if all ids are rows of the table; those that are `padding` may be anything.
absl::Status CheckIds(const torch::Tensor& ids, int64_t rows, int64_t padding) {
  const int64_t* begin = ids.data_ptr<int64_t>();
  const int64_t* end = begin + ids.numel();
  const auto* bad = std::find_if(begin, end, [&](int64_t id) { return (id < 0 || id >= rows) && id != padding; });
  if (bad == end) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Ids has ", *bad, " and W has ", rows, " rows; want ids from 0 to ",
                                                 rows - 1, ": give the embedding more rows, or hash the ids"));
}

// The rows of W, with `shape` before their extent.
absl::Status Lookup(KernelCall& call, std::vector<int64_t> shape) {
  const torch::Tensor& w = call.In("W");
  torch::Tensor ids = call.In("Ids").to(torch::kInt64).reshape({-1}).contiguous();
  const int64_t padding = call.Int("padding_idx");
  RETURN_IF_ERROR(CheckIds(ids, w.size(0), padding));
  const torch::Tensor is_padding = padding == -1 ? torch::Tensor() : (ids == padding);
  if (is_padding.defined()) ids = ids.clamp(0, w.size(0) - 1);
  const bool sparse = call.Bool("is_sparse") || call.Bool("is_distributed");
  torch::Tensor rows = at::embedding(w, ids, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, sparse);
  if (is_padding.defined()) rows = rows.masked_fill(is_padding.unsqueeze(1), 0);
  shape.push_back(w.size(1));
  return call.Give("Out", rows.reshape(shape), "Ids");
}

absl::Status LookupTable(KernelCall& call) {
  std::vector<int64_t> shape = call.In("Ids").sizes().vec();
  if (!shape.empty()) shape.pop_back();
  return Lookup(call, std::move(shape));
}

absl::Status LookupTableV2(KernelCall& call) { return Lookup(call, call.In("Ids").sizes().vec()); }

constexpr KernelRow kMatrixKernels[] = {
    {"mul", Mul},
    {"matmul", MatMul},
    {"bmm", Bmm},
    {"dot", Dot},
    {"addmm", Addmm},
    {"lookup_table", LookupTable},
    {"lookup_table_v2", LookupTableV2},
};

}  // namespace

std::span<const KernelRow> MatrixKernels() { return kMatrixKernels; }

}  // namespace regatta::exec
