#include "exec/kernels/integers.h"

namespace regatta::exec {

Integers IntegersOf(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.to(torch::kInt64).reshape({-1}).contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

Integers IntegersOf(const KernelCall& call, std::string_view slot, std::string_view list, std::string_view attribute) {
  if (call.Has(list)) {
    Integers values;
    for (size_t i = 0; i < call.Count(list); ++i) values.push_back(IntegersOf(call.In(list, i)).at(0));
    return values;
  }
  return call.Has(slot) ? IntegersOf(call.In(slot)) : call.Ints(attribute);
}

}  // namespace regatta::exec
