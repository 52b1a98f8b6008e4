// A net whose answers can be used without a look at them. A net is a user's code: an output of another shape would be
// read past its end, and an exception would end the process. Thread-safety: as Net. Invariant: what Forward, Predict
// and Backward return has the declared shapes; nothing that the net throws gets out.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "train/net.h"

namespace regatta::train {

class CheckedNet {
 public:
  // Makes a net, and checks what it declares.
  static absl::StatusOr<CheckedNet> Make(const NetMaker& maker);

  const NetSpec& spec() const { return net_->spec(); }
  // INVALID_ARGUMENT names the output that is wrong, INTERNAL what the net threw. Both begin with the net's name.
  absl::StatusOr<NetOutput> Forward(const NetInput& in);
  absl::StatusOr<Predictions> Predict(const NetInput& in);
  // `in` is what the last Forward was given.
  absl::StatusOr<NetGrads> Backward(const NetInput& in, const base::TensorView& weights);

 private:
  explicit CheckedNet(std::unique_ptr<Net> net) : net_(std::move(net)) {}

  std::unique_ptr<Net> net_;
};

}  // namespace regatta::train
