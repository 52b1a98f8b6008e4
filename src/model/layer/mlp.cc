#include "model/layer/mlp.h"

#include <cmath>

#include "model/layer/bias_relu.h"

namespace regatta::model {
namespace {

// The whole stack as one node of the autograd graph: two GEMMs and one elementwise pass a layer each way, where the
// eager operators make three passes forward and four backward. That is 5% of a step on a fast core.
class MlpFunction : public torch::autograd::Function<MlpFunction> {
 public:
  // weights_and_biases: w0, b0, w1, b1, …
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& input,
                               torch::autograd::variable_list weights_and_biases, bool last_relu) {
    const size_t layers = weights_and_biases.size() / 2;
    torch::autograd::variable_list saved{input};
    torch::Tensor x = input;
    for (size_t i = 0; i < layers; ++i) {
      const bool relu = i + 1 < layers || last_relu;
      x = torch::mm(x, weights_and_biases[2 * i]);
      AddBias(x.data_ptr<float>(), weights_and_biases[2 * i + 1].contiguous().data_ptr<float>(), x.size(0), x.size(1),
              relu ? Activation::kRelu : Activation::kNone);
      if (i + 1 < layers) saved.push_back(x);
    }
    if (last_relu) saved.push_back(x);
    for (size_t i = 0; i < layers; ++i) saved.push_back(weights_and_biases[2 * i]);
    context->save_for_backward(std::move(saved));
    context->saved_data["layers"] = static_cast<int64_t>(layers);
    context->saved_data["last_relu"] = last_relu;
    return x;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const int64_t layers = context->saved_data["layers"].toInt();
    const bool last_relu = context->saved_data["last_relu"].toBool();
    const torch::autograd::variable_list saved = context->get_saved_variables();  // x0, y0 … , w0 …
    const auto weight = [&](int64_t i) { return saved[saved.size() - layers + i]; };
    torch::autograd::variable_list result(2 * layers + 2);
    torch::Tensor grad = grads[0].contiguous();
    if (last_relu) grad = grad.clone();  // the layer below masks it in place, and it is not ours
    for (int64_t i = layers - 1; i >= 0; --i) {
      torch::Tensor bias_grad = torch::empty({grad.size(1)});
      if (i + 1 < layers || last_relu) {
        ReluBackward(grad.data_ptr<float>(), saved[i + 1].data_ptr<float>(), grad.size(0), grad.size(1),
                     bias_grad.data_ptr<float>());
      } else {
        SumRows(grad.data_ptr<float>(), grad.size(0), grad.size(1), bias_grad.data_ptr<float>());
      }
      result[1 + 2 * i] = torch::mm(saved[i].t(), grad);
      result[2 + 2 * i] = bias_grad;
      if (i > 0 || context->needs_input_grad(0)) grad = torch::mm(grad, weight(i).t());
    }
    if (context->needs_input_grad(0)) result[0] = grad;
    return result;
  }
};

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
  torch::autograd::variable_list weights_and_biases;
  for (const Layer& layer : layers_) {
    weights_and_biases.push_back(in.dense[layer.weight]);
    weights_and_biases.push_back(in.dense[layer.bias]);
  }
  return MlpFunction::apply(x, weights_and_biases, last_ == LastLayer::kRelu);
}

}  // namespace regatta::model
