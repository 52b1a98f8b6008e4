#include "exec/kernel_table.h"

#include <glog/logging.h>

#include <unordered_map>

namespace regatta::exec {

namespace {

using KernelsByType = std::unordered_map<std::string_view, const KernelRow*>;

KernelsByType JoinFamilies() {
  KernelsByType by_type;
  for (const auto rows : {ActivationKernels(), ControlKernels(), ElementwiseKernels(), FillKernels(), GradientKernels(),
                          LossKernels(), MatrixKernels(), MetricKernels(), NnKernels(), OptimizerKernels(),
                          RecurrentKernels(), ReduceKernels(), ReshapeKernels(), SequenceKernels(), TensorKernels()})
    for (const KernelRow& row : rows)
      CHECK(by_type.emplace(row.type, &row).second) << "kernel table: two rows for " << row.type;
  return by_type;
}

}  // namespace

const KernelRow* FindKernel(std::string_view type) {
  static const KernelsByType kKernels = JoinFamilies();
  const auto found = kKernels.find(type);
  return found == kKernels.end() ? nullptr : found->second;
}

}  // namespace regatta::exec
