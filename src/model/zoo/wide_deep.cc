// Wide & Deep: a linear model of the dense features and the DNN of everything, summed before the sigmoid. Without dense
// features the linear model is its bias.
#include <cmath>

#include "model/layer/criteo_slots.h"
#include "model/layer/mlp.h"
#include "model/zoo.h"

namespace regatta::model {
namespace {

class WideDeep : public Model {
 public:
  explicit WideDeep(base::Params& params) : deep_(Declare(params)) {}

  Output Forward(const Input& in) const override {
    torch::Tensor wide = in.dense[wide_bias_];
    if (wide_weight_ >= 0) wide = torch::addmm(wide, in.features, in.dense[wide_weight_]);
    return BinaryOutput(wide + deep_(in, in.embeddings[0]), in.labels);
  }

 private:
  Mlp Declare(base::Params& params) {
    DeclareCriteoSlots(params, spec_);
    const int64_t features = spec_.schema.dense_dim;
    if (features > 0) wide_weight_ = spec_.AddDense("wide.w", {features, 1}, Init::Normal(1.0 / std::sqrt(features)));
    wide_bias_ = spec_.AddDense("wide.b", {1}, Init::Constant(0));
    const int x = AddDeepInput(params, spec_);
    std::vector<int64_t> sizes = FcSizes(params);
    sizes.push_back(1);
    return Mlp(spec_, "deep", spec_.width(x), sizes, LastLayer::kLinear);
  }

  int wide_weight_ = -1, wide_bias_ = 0;
  Mlp deep_;
};

}  // namespace

std::unique_ptr<Model> MakeWideDeep(base::Params& params) { return std::make_unique<WideDeep>(params); }

}  // namespace regatta::model
