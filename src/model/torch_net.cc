#include "model/torch_net.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <typeinfo>
#include <utility>
#include <vector>

#include "model/tensor.h"

namespace regatta::model {
namespace {

using base::DType;
using base::StepKind;
using base::TensorView;

std::string TypeName(const Model& model) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(model).name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : typeid(model).name();
}

// torch has no read-only tensors; nothing writes through this one.
torch::Tensor Wrap(const TensorView& view) {
  return torch::from_blob(view.data, at::IntArrayRef(view.shape.data(), static_cast<size_t>(view.dims)),
                          view.dtype == DType::kInt64 ? torch::kInt64 : torch::kFloat32);
}

std::optional<DType> ToDType(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat32:
      return DType::kFloat32;
    case torch::kFloat64:
      return DType::kFloat64;
    case torch::kFloat16:
      return DType::kFloat16;
    case torch::kBFloat16:
      return DType::kBFloat16;
    case torch::kInt8:
      return DType::kInt8;
    case torch::kInt16:
      return DType::kInt16;
    case torch::kInt32:
      return DType::kInt32;
    case torch::kInt64:
      return DType::kInt64;
    case torch::kUInt8:
      return DType::kUInt8;
    case torch::kBool:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

// An undefined tensor is an empty view.
absl::StatusOr<TensorView> ToView(const char* what, const torch::Tensor& tensor) {
  TensorView view;
  if (!tensor.defined()) return view;
  const std::optional<DType> dtype = ToDType(tensor.scalar_type());
  if (!dtype.has_value() || tensor.layout() != torch::kStrided || !(tensor.is_cpu() || tensor.is_cuda()))
    return absl::InvalidArgumentError(absl::StrCat("its ", what, " is a tensor of ", tensor.toString(),
                                                   "; it must be a dense tensor of float32 in the memory of the CPU"));
  if (tensor.dim() > TensorView::kMaxDims)
    return absl::InvalidArgumentError(absl::StrCat("its ", what, " has ", tensor.dim(), " dimensions"));
  view.data = tensor.data_ptr();
  view.dtype = *dtype;
  view.device = tensor.is_cuda() ? base::Device::kCuda : base::Device::kCpu;
  view.dims = static_cast<int>(tensor.dim());
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), view.shape.begin());
  std::copy(tensor.strides().begin(), tensor.strides().end(), view.strides.begin());
  return view;
}

// What torch throws comes with a list of C++ frames, which says nothing to a user.
template <typename Call>
auto WithoutFrames(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const c10::Error& e) {
    return absl::InternalError(absl::StrCat("it failed: ", e.what_without_backtrace()));
  }
}

class TorchNet : public train::Net {
 public:
  TorchNet(const Model& model, const std::string& name) : model_(model), spec_(model.spec()) { spec_.name = name; }

  const train::NetSpec& spec() const override { return spec_; }

  absl::StatusOr<train::NetOutput> Forward(const train::NetInput& in) override {
    return WithoutFrames([&] { return RunForward(in); });
  }
  absl::StatusOr<train::Predictions> Predict(const train::NetInput& in) override {
    Output output;
    const absl::Status run = WithoutFrames([&] {
      output = RunModel(in);
      return absl::OkStatus();
    });
    if (!run.ok())
      return absl::Status(run.code(), absl::StrCat(run.message(),
                                                   ". Its Forward was asked for predictions without labels: in.labels "
                                                   "is undefined then, and the loss may stay so (BinaryOutput and "
                                                   "RegressionOutput do that). Change Forward, or give it data with "
                                                   "labels"));
    return WithoutFrames([&] { return TakePredictions(output.predictions); });
  }
  absl::StatusOr<train::NetGrads> Backward(const TensorView& weights) override {
    return WithoutFrames([&] { return RunBackward(weights); });
  }

 private:
  // Without labels they are undefined.
  Output RunModel(const train::NetInput& in) {
    Release();
    const bool training = in.kind == StepKind::kTrain;
    torch::AutoGradMode grad_mode(training);
    for (const TensorView& lookup : in.lookups) leaves_.push_back(Wrap(lookup).set_requires_grad(training));
    for (const TensorView& offsets : in.offsets) offsets_.push_back(offsets.empty() ? torch::Tensor() : Wrap(offsets));
    Bind(in.parameters, training);
    return model_.Forward({.embeddings = leaves_,
                           .dense = parameters_,
                           .features = Wrap(in.features),
                           .labels = in.labels.empty() ? torch::Tensor() : Wrap(in.labels),
                           .offsets = offsets_});
  }

  absl::StatusOr<train::NetOutput> RunForward(const train::NetInput& in) {
    Output output = RunModel(in);
    loss_ = std::move(output.loss);
    // Of another shape or type it is refused as it is.
    if (loss_.defined() && loss_.layout() == torch::kStrided) values_ = loss_.detach().contiguous();
    train::NetOutput out;
    ASSIGN_OR_RETURN(out.loss, ToView("loss", values_));
    ASSIGN_OR_RETURN(out.predictions, TakePredictions(output.predictions));
    return out;
  }

  // Keeps the predictions; of several outputs one behind the other.
  absl::StatusOr<train::Predictions> TakePredictions(const torch::Tensor& predictions) {
    const auto outputs = static_cast<int64_t>(spec_.outputs.size());
    prediction_views_.assign(spec_.outputs.size(), {});
    predictions_ = predictions;
    // Of another shape or type they are refused as they are.
    if (predictions_.defined() && predictions_.layout() == torch::kStrided) predictions_ = predictions_.contiguous();
    ASSIGN_OR_RETURN(const TensorView whole, ToView("prediction", predictions_));
    if (outputs == 1) {
      prediction_views_[0] = whole;
      return prediction_views_;
    }
    if (whole.empty()) return prediction_views_;
    if (whole.dims != 2 || whole.shape[1] != outputs)
      return absl::InvalidArgumentError(absl::StrCat("its prediction has the shape ", whole.ShapeText(),
                                                     "; it must have the shape [samples, ", outputs,
                                                     "], a column for each output"));
    predictions_ = predictions_.detach().t().contiguous();
    for (int64_t k = 0; k < outputs; ++k) {
      ASSIGN_OR_RETURN(prediction_views_[static_cast<size_t>(k)], ToView("prediction", predictions_[k]));
    }
    return prediction_views_;
  }

  absl::StatusOr<train::NetGrads> RunBackward(const TensorView& weights) {
    torch::AutoGradMode grad_mode(true);
    const torch::Tensor loss = std::exchange(loss_, {});  // with it goes the graph
    loss.backward(Wrap(weights));
    RETURN_IF_ERROR(Collect(leaves_, "gradient of an embedding", leaf_grads_));
    RETURN_IF_ERROR(Collect(parameters_, "gradient of a parameter", parameter_grads_));
    return train::NetGrads{leaf_grads_, parameter_grads_};
  }

  // Parameters that lie where they lay are the same tensors: in one thread the table's own memory, step after step.
  void Bind(std::span<const TensorView> parameters, bool training) {
    parameters_.resize(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      torch::Tensor& tensor = parameters_[i];
      if (!tensor.defined() || tensor.data_ptr() != parameters[i].data) tensor = Wrap(parameters[i]);
      tensor.set_requires_grad(training);
    }
  }

  absl::Status Collect(std::span<const torch::Tensor> inputs, const char* what, std::vector<TensorView>& views) {
    for (const torch::Tensor& input : inputs) {
      torch::Tensor grad = input.grad();
      if (grad.defined()) held_.push_back(grad = grad.contiguous());
      ASSIGN_OR_RETURN(views.emplace_back(), ToView(what, grad));
    }
    return absl::OkStatus();
  }

  // What the last step left.
  void Release() {
    loss_ = values_ = predictions_ = torch::Tensor();
    held_.clear();
    leaves_.clear();
    offsets_.clear();
    prediction_views_.clear();
    leaf_grads_.clear();
    parameter_grads_.clear();
    for (torch::Tensor& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
  }

  const Model& model_;
  train::NetSpec spec_;
  std::vector<torch::Tensor> leaves_;
  std::vector<torch::Tensor> offsets_;
  std::vector<torch::Tensor> parameters_;
  torch::Tensor loss_;
  torch::Tensor values_;  // of the loss
  torch::Tensor predictions_;
  std::vector<TensorView> prediction_views_;
  std::vector<torch::Tensor> held_;  // the gradients that the views point into
  std::vector<TensorView> leaf_grads_;
  std::vector<TensorView> parameter_grads_;
};

}  // namespace

train::NetMaker TorchNets(const Model& model, std::string name) {
  if (name.empty()) name = TypeName(model);
  return [&model, name]() -> absl::StatusOr<std::unique_ptr<train::Net>> {
    return std::make_unique<TorchNet>(model, name);
  };
}

}  // namespace regatta::model
