// Fully connected layers with ReLU between them: weights Normal(1/√fan_in), biases zero.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"
#include "model/tensor.h"

namespace regatta::model {

enum class LastLayer : uint8_t { kLinear, kRelu };

class Mlp {
 public:
  // Declares <name>_<i>.w of [in, out] and <name>_<i>.b for each of `sizes`.
  Mlp(ModelSpec& spec, const std::string& name, int64_t in, const std::vector<int64_t>& sizes, LastLayer last);
  torch::Tensor operator()(const Input& in, const torch::Tensor& x) const;

 private:
  struct Layer {
    int weight, bias;
  };
  std::vector<Layer> layers_;
  LastLayer last_;
};

}  // namespace regatta::model
