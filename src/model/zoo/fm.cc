// Factorisation machine over the slots and the dense features.
#include "model/layer/fm.h"

#include "model/layer/criteo_slots.h"
#include "model/zoo.h"

namespace regatta::model {
namespace {

class FmModel : public Model {
 public:
  explicit FmModel(base::Params& params) : fm_(Declare(params)) {}

  Output Forward(const Input& in) const override {
    return BinaryOutput(fm_.Logit(in, fm_.Fields(in)) + in.dense[bias_], in.labels);
  }

 private:
  Fm Declare(base::Params& params) {
    DeclareCriteoSlots(params, spec_);
    bias_ = spec_.AddDense("bias", {1}, Init::Constant(0));
    return Fm(spec_, EmbeddingDim(params));
  }

  int bias_ = 0;
  Fm fm_;
};

}  // namespace

std::unique_ptr<Model> MakeFm(base::Params& params) { return std::make_unique<FmModel>(params); }

}  // namespace regatta::model
