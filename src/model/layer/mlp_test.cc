#include "model/layer/mlp.h"

#include <gtest/gtest.h>

namespace regatta::model {
namespace {

struct Case {
  LastLayer last;
  std::vector<int64_t> sizes;
};

class MlpTest : public testing::TestWithParam<Case> {};

// Against the same layers written with torch's own operators, in double.
TEST_P(MlpTest, LossAndEveryGradientEqualTorchs) {
  torch::manual_seed(5);
  ModelSpec spec;
  const Mlp mlp(spec, "fc", 7, GetParam().sizes, GetParam().last);
  std::vector<torch::Tensor> params, reference;
  for (const DenseSpec& dense : spec.dense) {
    params.push_back(torch::randn(dense.shape).requires_grad_(true));
    reference.push_back(params.back().detach().to(torch::kDouble).requires_grad_(true));
  }
  torch::Tensor x = torch::randn({50, 7}).requires_grad_(true);
  torch::Tensor x_reference = x.detach().to(torch::kDouble).requires_grad_(true);

  const torch::Tensor y = mlp({.embeddings = {}, .dense = params, .features = {}, .labels = {}}, x);
  const torch::Tensor out_grad = torch::randn(y.sizes());
  const torch::Tensor kept = out_grad.clone();
  y.backward(out_grad);
  EXPECT_TRUE(torch::equal(out_grad, kept)) << "the gradient that came in is not ours to change";

  torch::Tensor z = x_reference;
  for (size_t i = 0; i < reference.size() / 2; ++i) {
    z = torch::matmul(z, reference[2 * i]) + reference[2 * i + 1];
    if (i + 1 < reference.size() / 2 || GetParam().last == LastLayer::kRelu) z = torch::relu(z);
  }
  z.backward(out_grad.to(torch::kDouble));

  const auto close = [](const torch::Tensor& a, const torch::Tensor& b) {
    return torch::allclose(a.to(torch::kDouble), b, 1e-4, 1e-4);
  };
  EXPECT_TRUE(close(y, z));
  EXPECT_TRUE(close(x.grad(), x_reference.grad()));
  for (size_t i = 0; i < params.size(); ++i) EXPECT_TRUE(close(params[i].grad(), reference[i].grad())) << i;
}

INSTANTIATE_TEST_SUITE_P(Shapes, MlpTest,
                         testing::Values(Case{LastLayer::kLinear, {1}}, Case{LastLayer::kLinear, {9, 5, 1}},
                                         Case{LastLayer::kRelu, {9}}, Case{LastLayer::kRelu, {12, 6}}));

TEST(Mlp, AnInputWithoutGradientGetsNone) {
  ModelSpec spec;
  const Mlp mlp(spec, "fc", 3, {4, 1}, LastLayer::kLinear);
  std::vector<torch::Tensor> params;
  for (const DenseSpec& dense : spec.dense) params.push_back(torch::ones(dense.shape).requires_grad_(true));
  const torch::Tensor x = torch::ones({2, 3});
  mlp({.embeddings = {}, .dense = params, .features = {}, .labels = {}}, x).sum().backward();
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(params[0].grad().defined());
}

}  // namespace
}  // namespace regatta::model
