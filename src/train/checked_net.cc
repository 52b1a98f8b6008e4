#include "train/checked_net.h"

#include <exception>
#include <utility>

namespace regatta::train {
namespace {

using base::TensorView;

// The result of `call`, or what it threw as an error.
template <typename Call>
auto Caught(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("it failed: ", e.what()));
  } catch (...) {
    return absl::InternalError("it failed: it threw something that is no std::exception");
  }
}

// `what` makes the name of the view, for an error only: this runs every step.
template <typename What>
absl::Status CheckFloats(const TensorView& view, const What& what) {
  if (view.dtype != base::DType::kFloat32)
    return absl::InvalidArgumentError(
        absl::StrCat(what(), " has the type ", base::Name(view.dtype), "; it must be float32"));
  if (view.device != base::Device::kCpu)
    return absl::InvalidArgumentError(absl::StrCat(what(), " is not in the memory of the CPU"));
  if (!view.contiguous()) return absl::InvalidArgumentError(absl::StrCat(what(), " is not contiguous"));
  return absl::OkStatus();
}

// `what` is as in CheckFloats.
template <typename What>
absl::Status CheckOnePerSample(const What& what, const TensorView& view, int64_t samples) {
  if (view.empty() || view.dims != 1 || view.shape[0] != samples)
    return absl::InvalidArgumentError(
        absl::StrCat(what(), view.empty() ? " is not set" : absl::StrCat(" has the shape ", view.ShapeText()),
                     "; it must have the shape [", samples, "], one value for each sample"));
  return CheckFloats(view, what);
}

absl::Status CheckPredictions(const NetSpec& spec, Predictions predictions, int64_t samples) {
  if (predictions.size() != spec.outputs.size())
    return absl::InvalidArgumentError(absl::StrCat("it gives predictions of ", predictions.size(),
                                                   " outputs, and it declares ", spec.outputs.size()));
  const bool one = predictions.size() == 1;
  for (size_t i = 0; i < predictions.size(); ++i)
    RETURN_IF_ERROR(CheckOnePerSample(
        [&] { return one ? "its prediction" : absl::StrCat("its prediction '", spec.outputs[i].name, "'"); },
        predictions[i], samples));
  return absl::OkStatus();
}

absl::Status CheckGradients(const char* what, std::span<const TensorView> grads, std::span<const TensorView> of) {
  if (grads.size() != of.size())
    return absl::InvalidArgumentError(
        absl::StrCat("it gives gradients of ", grads.size(), " ", what, "s, and it declares ", of.size()));
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].empty()) continue;
    const auto named = [what, i] { return absl::StrCat("its gradient of ", what, " ", i); };
    if (!grads[i].SameShape(of[i]))
      return absl::InvalidArgumentError(absl::StrCat(named(), " has the shape ", grads[i].ShapeText(),
                                                     "; it must have the shape ", of[i].ShapeText()));
    RETURN_IF_ERROR(CheckFloats(grads[i], named));
  }
  return absl::OkStatus();
}

absl::Status Named(const NetSpec& spec, const absl::Status& status) {
  return status.ok() ? status : base::Annotate(status, absl::StrCat("the model ", spec.name));
}

}  // namespace

absl::StatusOr<CheckedNet> CheckedNet::Make(const NetMaker& maker) {
  auto made = Caught(maker);
  if (!made.ok()) return base::Annotate(made.status(), "the model cannot be made");
  RETURN_IF_ERROR(Named((*made)->spec(), CheckNetSpec((*made)->spec())));
  return CheckedNet(*std::move(made));
}

absl::StatusOr<NetOutput> CheckedNet::Forward(const NetInput& in) {
  const auto out = Caught([&] { return net_->Forward(in); });
  if (!out.ok()) return Named(spec(), out.status());
  RETURN_IF_ERROR(Named(spec(), CheckOnePerSample([] { return "its loss"; }, out->loss, in.samples())));
  RETURN_IF_ERROR(Named(spec(), CheckPredictions(spec(), out->predictions, in.samples())));
  return *out;
}

absl::StatusOr<Predictions> CheckedNet::Predict(const NetInput& in) {
  const auto predictions = Caught([&] { return net_->Predict(in); });
  if (!predictions.ok()) return Named(spec(), predictions.status());
  RETURN_IF_ERROR(Named(spec(), CheckPredictions(spec(), *predictions, in.samples())));
  return *predictions;
}

absl::StatusOr<NetGrads> CheckedNet::Backward(const NetInput& in, const TensorView& weights) {
  const auto grads = Caught([&] { return net_->Backward(weights); });
  if (!grads.ok()) return Named(spec(), grads.status());
  RETURN_IF_ERROR(Named(spec(), CheckGradients("embedding", grads->lookups, in.lookups)));
  RETURN_IF_ERROR(Named(spec(), CheckGradients("parameter", grads->parameters, in.parameters)));
  return *grads;
}

}  // namespace regatta::train
