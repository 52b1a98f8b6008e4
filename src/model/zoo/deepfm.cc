// DeepFM: a factorisation machine and a DNN over the same field vectors, summed before the sigmoid.
#include "model/layer/criteo_slots.h"
#include "model/layer/fm.h"
#include "model/layer/mlp.h"
#include "model/zoo.h"

namespace regatta::model {
namespace {

class DeepFm : public Model {
 public:
  explicit DeepFm(base::Params& params) : fm_(DeclareFm(params)), deep_(DeclareDeep(params)) {}

  Output Forward(const Input& in) const override {
    const torch::Tensor fields = fm_.Fields(in);
    const torch::Tensor deep = deep_(in, fields.reshape({-1, fm_.field_width()}));
    return BinaryOutput(fm_.Logit(in, fields) + in.dense[bias_] + deep.squeeze(1), in.labels);
  }

 private:
  Fm DeclareFm(base::Params& params) {
    DeclareCriteoSlots(params, spec_);
    bias_ = spec_.AddDense("bias", {1}, Init::Constant(0));
    return Fm(spec_, EmbeddingDim(params));
  }
  Mlp DeclareDeep(base::Params& params) {
    std::vector<int64_t> sizes = FcSizes(params);
    sizes.push_back(1);
    return Mlp(spec_, "deep", fm_.field_width(), sizes, LastLayer::kLinear);
  }

  int bias_ = 0;
  Fm fm_;
  Mlp deep_;
};

}  // namespace

std::unique_ptr<Model> MakeDeepFm(base::Params& params) { return std::make_unique<DeepFm>(params); }

}  // namespace regatta::model
