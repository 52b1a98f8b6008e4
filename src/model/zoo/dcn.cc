// Deep & Cross: a cross network and a DNN over the same input, side by side into one logit.
#include <cmath>

#include "model/layer/criteo_slots.h"
#include "model/layer/cross.h"
#include "model/layer/mlp.h"
#include "model/zoo.h"

namespace regatta::model {
namespace {

class Dcn : public Model {
 public:
  explicit Dcn(base::Params& params) : deep_(DeclareDeep(params)), cross_(DeclareCross(params)) {}

  Output Forward(const Input& in) const override {
    const torch::Tensor x = in.embeddings[0];
    const Cross::Result cross = cross_(in, x);
    const torch::Tensor joint = torch::cat({deep_(in, x), cross.x}, 1);
    Output out = BinaryOutput(torch::addmm(in.dense[bias_], joint, in.dense[weight_]), in.labels);
    if (l2_reg_cross_ > 0 && out.loss.defined()) out.loss = out.loss + l2_reg_cross_ * cross.penalty;
    return out;
  }

 private:
  Mlp DeclareDeep(base::Params& params) {
    DeclareCriteoSlots(params, spec_);
    dim_ = EmbeddingDim(params);
    const int x = spec_.AddEmbedding({.table = "embedding",
                                      .dim = dim_,
                                      .init = Init::Normal(0.1 / std::sqrt(dim_)),
                                      .dense_columns = DenseColumns::kAppended});
    sizes_ = FcSizes(params);
    return Mlp(spec_, "deep", spec_.width(x), sizes_, LastLayer::kRelu);
  }
  Cross DeclareCross(base::Params& params) {
    const int64_t width = spec_.width(0), joint = sizes_.back() + width;
    const auto layers = static_cast<int>(params.Int("cross_num", {1, 100}, 2));
    l2_reg_cross_ = params.Double("l2_reg_cross", {0, 1e6}, 0.00005);
    if (params.Bool("dnn_use_bn", false)) params.Fail("dnn_use_bn", "batch normalisation is not available");
    weight_ = spec_.AddDense("fc.w", {joint, 1}, Init::Normal(1.0 / std::sqrt(joint)));
    bias_ = spec_.AddDense("fc.b", {1}, Init::Constant(0));
    return Cross(spec_, width, layers, 0.1 / std::sqrt(dim_));
  }

  int dim_ = 0, weight_ = 0, bias_ = 0;
  double l2_reg_cross_ = 0;
  std::vector<int64_t> sizes_;
  Mlp deep_;
  Cross cross_;
};

}  // namespace

std::unique_ptr<Model> MakeDcn(base::Params& params) { return std::make_unique<Dcn>(params); }

}  // namespace regatta::model
