#include "model/layer/mlp.h"

#include <torch/csrc/autograd/functions/utils.h>

#include <cmath>

#include "model/layer/bias_relu.h"

namespace regatta::model {
namespace {

// The whole stack as one node of the autograd graph: two GEMMs and one elementwise pass a layer each way, where the
// eager operators make three passes forward and four backward.
struct MlpBackward : public torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    const size_t layers = weights.size();
    torch::autograd::variable_list result(2 * layers + 1);
    if (!grads[0].defined()) return result;
    torch::NoGradGuard no_grad;
    torch::Tensor grad = grads[0].contiguous();
    if (last == LastLayer::kRelu) grad = grad.clone();  // masked in place below, and the caller's until then
    for (size_t i = layers; i-- > 0;) {
      torch::Tensor bias_grad = torch::empty({grad.size(1)});
      if (i + 1 < layers || last == LastLayer::kRelu) {
        ReluBackward(grad.data_ptr<float>(), outputs[i].data_ptr<float>(), grad.size(0), grad.size(1),
                     bias_grad.data_ptr<float>());
      } else {
        SumRows(grad.data_ptr<float>(), grad.size(0), grad.size(1), bias_grad.data_ptr<float>());
      }
      result[1 + 2 * i] = torch::mm((i == 0 ? input : outputs[i - 1]).t(), grad);
      result[2 + 2 * i] = bias_grad;
      if (i > 0 || task_should_compute_output(0)) grad = torch::mm(grad, weights[i].t());
    }
    if (task_should_compute_output(0)) result[0] = grad;
    return result;
  }
  void release_variables() override {
    input.reset();
    outputs.clear();
  }

  LastLayer last = LastLayer::kLinear;
  torch::Tensor input;
  std::vector<torch::Tensor> outputs;  // of every layer, after its ReLU; detached, so that nothing refers to itself
  std::vector<torch::Tensor> weights;
};

// Nodes of the graph are held by std::shared_ptr in libtorch 1.13 and by c10::intrusive_ptr in 2.14.
template <typename Made, typename Base>
std::shared_ptr<Made> MakeNode(const std::shared_ptr<Base>&) {
  return std::make_shared<Made>();
}
template <typename Made, typename Base>
c10::intrusive_ptr<Made> MakeNode(const c10::intrusive_ptr<Base>&) {
  return c10::make_intrusive<Made>();
}

}  // namespace

Mlp::Mlp(ModelSpec& spec, const std::string& name, int64_t in, const std::vector<int64_t>& sizes, LastLayer last)
    : last_(last) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string layer = name + "_" + std::to_string(i);
    const int weight = spec.AddDense(layer + ".w", {in, sizes[i]}, Init::Normal(1.0 / std::sqrt(in)));
    layers_.push_back({weight, spec.AddDense(layer + ".b", {sizes[i]}, Init::Constant(0))});
    in = sizes[i];
  }
}

torch::Tensor Mlp::operator()(const Input& in, const torch::Tensor& x) const {
  torch::autograd::variable_list inputs{x};
  auto node = MakeNode<MlpBackward>(torch::autograd::Edge().function);
  node->last = last_;
  torch::Tensor y = x.detach().contiguous();
  node->input = y;
  {
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < layers_.size(); ++i) {
      const torch::Tensor& weight = in.dense[layers_[i].weight];
      const torch::Tensor& bias = in.dense[layers_[i].bias];
      inputs.insert(inputs.end(), {weight, bias});
      y = torch::mm(y, weight);
      const bool relu = i + 1 < layers_.size() || last_ == LastLayer::kRelu;
      AddBias(y.data_ptr<float>(), bias.data_ptr<float>(), y.size(0), y.size(1),
              relu ? Activation::kRelu : Activation::kNone);
      node->outputs.push_back(y.detach());
      node->weights.push_back(weight.detach());
    }
  }
  if (!torch::GradMode::is_enabled() || !torch::autograd::any_variable_requires_grad(inputs)) return y;
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  torch::autograd::set_history(y, node);
  return y;
}

}  // namespace regatta::model
