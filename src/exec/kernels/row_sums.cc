#include "exec/kernels/row_sums.h"

namespace regatta::exec {

namespace {

torch::Tensor Zeros(const torch::Tensor& values, int64_t height) {
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = height;
  return at::zeros(shape, values.options());
}

}  // namespace

SelectedRows MergeRows(const SelectedRows& rows) {
  const auto [unique, places, counts] = at::_unique2(rows.rows, /*sorted=*/true, /*return_inverse=*/true);
  torch::Tensor sums = Zeros(rows.values, unique.size(0));
  sums.index_add_(0, places, rows.values);
  return {unique, sums, rows.height};
}

torch::Tensor ToDense(const SelectedRows& rows) {
  torch::Tensor dense = Zeros(rows.values, rows.height);
  dense.index_add_(0, rows.rows, rows.values);
  return dense;
}

}  // namespace regatta::exec
