#include "exec/kernels/broadcast.h"

namespace regatta::exec {

namespace {

// `shorter` with ones behind it, so that its end lies where axis says.
torch::Tensor Along(const torch::Tensor& longer, torch::Tensor shorter, int64_t axis) {
  const int64_t gap = longer.dim() - shorter.dim();
  if (axis < 0 || gap == 0 || axis == gap) return shorter;
  std::vector<int64_t> shape = shorter.sizes().vec();
  while (axis + static_cast<int64_t>(shape.size()) > longer.dim() && shape.size() > 1 && shape.back() == 1)
    shape.pop_back();
  while (axis + static_cast<int64_t>(shape.size()) < longer.dim()) shape.push_back(1);
  return shorter.reshape(shape);
}

}  // namespace

std::pair<torch::Tensor, torch::Tensor> Broadcast(const torch::Tensor& x, const torch::Tensor& y, int64_t axis) {
  const torch::Tensor typed = y.scalar_type() == x.scalar_type() ? y : y.to(x.scalar_type());
  if (x.dim() == y.dim()) return {x, typed};
  if (x.dim() > y.dim()) return {x, Along(x, typed, axis)};
  return {Along(y, x, axis), typed};
}

}  // namespace regatta::exec
