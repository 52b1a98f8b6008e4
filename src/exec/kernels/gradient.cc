// The backward pass: libtorch's autograd over what the operations before it recorded.
#include <torch/csrc/autograd/autograd.h>

#include "exec/kernel_table.h"

namespace regatta::exec {

namespace {

// An uncoalesced sparse gradient, as a sparse lookup makes it, is rows already.
SelectedRows RowsOf(const torch::Tensor& gradient) {
  return {gradient._indices()[0].contiguous(), gradient._values(), gradient.size(0)};
}

absl::Status Backward(KernelCall& call) {
  torch::autograd::variable_list targets, weights, inputs = call.Ins("Inputs");
  for (size_t i = 0; i < call.Count("Targets"); ++i) {
    const torch::Tensor& target = call.In("Targets", i);
    if (!target.requires_grad()) continue;  // no input reaches it
    targets.push_back(target);
    const torch::Tensor& weight = call.In("TargetGradients", i);
    if (!weight.defined() && target.numel() != 1) {
      weights.push_back(at::ones_like(target));
    } else {
      weights.push_back(weight.defined() ? weight.reshape(target.sizes()) : weight);
    }
  }
  torch::autograd::variable_list gradients(inputs.size());
  if (!targets.empty()) {
    gradients = torch::autograd::grad(targets, inputs, weights, /*retain_graph=*/call.keeps_record(),
                                      /*create_graph=*/false, /*allow_unused=*/true);
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) {
      call.SetOut("Gradients", at::zeros_like(inputs[i].detach()), call.LodOf("Inputs", i), i);
    } else if (gradients[i].is_sparse()) {
      call.SetOut("Gradients", RowsOf(gradients[i]), i);
    } else {
      call.SetOut("Gradients", gradients[i], call.LodOf("Inputs", i), i);
    }
  }
  return absl::OkStatus();
}

constexpr KernelRow kGradientKernels[] = {
    {"backward", Backward},
};

}  // namespace

std::span<const KernelRow> GradientKernels() { return kGradientKernels; }

}  // namespace regatta::exec
