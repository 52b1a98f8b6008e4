// Logistic regression. With sparse_inputs_slots: a weight per id and per dense feature of the Criteo slots. Without
// it: the fields feat_idx and feat_value, num_field of them a line, each id's weight times its value.
#include "model/layer/criteo_slots.h"
#include "model/zoo.h"

namespace regatta::model {
namespace {

class Lr : public Model {
 public:
  explicit Lr(base::Params& params) {
    params.Int("num_field", {1, 1'000'000}, 39);  // a hint: a line holds as many fields as it holds
    if (params.Has("sparse_inputs_slots")) {
      DeclareCriteoSlots(params, spec_);
    } else {
      spec_.schema.labels = {"label"};
      spec_.schema.sparse_slots = {"feat_idx"};
      spec_.schema.value_slot = "feat_value";
      spec_.schema.dense_slot.clear();
    }
    const double reg = params.Double("reg", {0, 1e6}, 0);
    spec_.AddEmbedding({.table = "weight", .dim = 1, .init = Init::Constant(0), .l2 = reg});
    bias_ = spec_.AddDense("bias", {1}, Init::Constant(0));
    if (spec_.schema.dense_dim > 0) weight_ = spec_.AddDense("dense_w", {spec_.schema.dense_dim}, Init::Constant(0));
  }

  Output Forward(const Input& in) const override {
    torch::Tensor logit = in.embeddings[0].sum(1) + in.dense[bias_];
    if (weight_ >= 0) logit = logit + torch::mv(in.features, in.dense[weight_]);
    return BinaryOutput(logit, in.labels);
  }

 private:
  int bias_ = 0, weight_ = -1;
};

}  // namespace

std::unique_ptr<Model> MakeLr(base::Params& params) { return std::make_unique<Lr>(params); }

}  // namespace regatta::model
