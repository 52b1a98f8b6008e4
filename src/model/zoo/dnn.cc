// CTR-DNN: the slots' vectors and the dense features through fully connected layers to one logit.
#include "model/layer/criteo_slots.h"
#include "model/layer/mlp.h"
#include "model/zoo.h"

namespace regatta::model {
namespace {

class Dnn : public Model {
 public:
  explicit Dnn(base::Params& params) : mlp_(Declare(params)) {}

  Output Forward(const Input& in) const override { return BinaryOutput(mlp_(in, in.embeddings[0]), in.labels); }

 private:
  Mlp Declare(base::Params& params) {
    DeclareCriteoSlots(params, spec_);
    const int x = AddDeepInput(params, spec_);
    std::vector<int64_t> sizes = FcSizes(params);
    sizes.push_back(1);
    return Mlp(spec_, "fc", spec_.width(x), sizes, LastLayer::kLinear);
  }

  Mlp mlp_;
};

}  // namespace

std::unique_ptr<Model> MakeDnn(base::Params& params) { return std::make_unique<Dnn>(params); }

}  // namespace regatta::model
