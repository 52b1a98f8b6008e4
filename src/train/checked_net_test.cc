#include "train/checked_net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "train/testing/embedded_job.h"
#include "train/testing/logistic_net.h"
#include "train/testing/two_task_net.h"

namespace regatta::train {
namespace {

using base::TensorView;
using testing::Embedded;
using ::testing::HasSubstr;
using testing::LogisticNet;
using testing::NetsOf;
using testing::Numbers;
using testing::SpoiltNet;
using ::testing::StartsWith;
using testing::TwoTaskNet;
using testing::Watcher;

using Views = std::vector<TensorView>;

const float kValues[8] = {3, 3, 3, 3, 3, 3, 3, 3};

// The error of a pass of one thread. Batches have 4 samples and 2 slots. A failed step must leave no row.
std::string ErrorOf(const NetMaker& nets, base::StepKind kind, int label_dim = 1) {
  Embedded setup(1, table::NanPolicy::kAbort, label_dim == 2 ? 2 : 1);
  Numbers data(3);
  data.label_dim = label_dim;
  Watcher watcher;
  const auto end = Trainer(nets, *setup.local, setup.options).RunPass(data, kind, {}, 0, watcher);
  EXPECT_EQ(setup.sparse->rows(), 0u);
  EXPECT_EQ(setup.dense->updates(), 0u);
  return std::string(end.status().message());
}

TEST(CheckedNet, AnOutputThatCannotBeIsAnError) {
  const std::pair<SpoiltNet::Spoil, std::string> cases[] = {
      {[](SpoiltNet::Output& o) { return o.predictions[0] = TensorView::Matrix(kValues, 4, 2), absl::OkStatus(); },
       "batch 0: the model logistic: its prediction has the shape [4, 2]; it must have the shape [4], one value for"},
      {[](SpoiltNet::Output& o) { return o.predictions[0] = TensorView::Vector(kValues, 2), absl::OkStatus(); },
       "its prediction has the shape [2]"},
      {[](SpoiltNet::Output& o) { return o.loss = TensorView::Matrix(kValues, 4, 1), absl::OkStatus(); },
       "its loss has the shape [4, 1]"},
      {[](SpoiltNet::Output& o) { return o.loss = TensorView::Of(kValues, {}), absl::OkStatus(); },
       "its loss has the shape []"},
      {[](SpoiltNet::Output& o) { return o.predictions[0] = {}, absl::OkStatus(); },
       "its prediction is not set; it must have"},
      {[](SpoiltNet::Output& o) { return o.predictions.clear(), absl::OkStatus(); },
       "it gives predictions of 0 outputs, and it declares 1"},
      {[](SpoiltNet::Output& o) { return o.predictions.push_back(o.predictions[0]), absl::OkStatus(); },
       "it gives predictions of 2 outputs, and it declares 1"},
      {[](SpoiltNet::Output& o) { return o.loss.dtype = base::DType::kFloat64, absl::OkStatus(); },
       "its loss has the type float64; it must be float32"},
      {[](SpoiltNet::Output& o) { return o.loss.strides[0] = 0, absl::OkStatus(); }, "its loss is not contiguous"},
      {[](SpoiltNet::Output& o) { return o.loss.device = base::Device::kCuda, absl::OkStatus(); },
       "its loss is not in the memory of the CPU"},
      {[](SpoiltNet::Output& o) { return o.predictions[0] = TensorView::Vector(kValues, 4), absl::OkStatus(); },
       "its prediction for sample 0 is 3; it must be a probability from 0 to 1"},
      {[](SpoiltNet::Output&) -> absl::Status { throw std::runtime_error("no such layer"); },
       "batch 0: the model logistic: it failed: no such layer"},
      {[](SpoiltNet::Output&) -> absl::Status { throw 7; },
       "the model logistic: it failed: it threw something that is no std::exception"},
      {[](SpoiltNet::Output&) { return absl::UnavailableError("the device is lost"); },
       "the model logistic: the device is lost"},
  };
  for (const auto& [spoil, found] : cases)
    for (const base::StepKind kind : {base::StepKind::kTrain, base::StepKind::kInfer})
      EXPECT_THAT(ErrorOf(NetsOf<SpoiltNet>(spoil, nullptr), kind), HasSubstr(found));
  for (const auto& [spoil, found] : cases) {
    if (found.starts_with("its loss")) continue;
    EXPECT_THAT(ErrorOf(NetsOf<SpoiltNet>(spoil, nullptr), base::StepKind::kInfer, 0), HasSubstr(found))
        << "without labels";
  }
}

// A net of two outputs whose declaration or predictions a test spoils.
class TwoSpoilt : public TwoTaskNet {
 public:
  using Spoil = std::function<void(std::vector<TensorView>&)>;
  explicit TwoSpoilt(Spoil spoil) : spoil_(std::move(spoil)) {}
  absl::StatusOr<NetOutput> Forward(const NetInput& in) override {
    ASSIGN_OR_RETURN(NetOutput out, TwoTaskNet::Forward(in));
    spoilt_.assign(out.predictions.begin(), out.predictions.end());
    spoil_(spoilt_);
    out.predictions = spoilt_;
    return out;
  }

 private:
  const Spoil spoil_;
  std::vector<TensorView> spoilt_;
};

TEST(CheckedNet, OfSeveralOutputsTheWrongOneIsNamed) {
  const float infinite[4] = {1, 2, INFINITY, 4};
  const std::pair<TwoSpoilt::Spoil, std::string> cases[] = {
      {[](auto& p) { p[1] = TensorView::Vector(kValues, 3); },
       "the model two tasks: its prediction 'price' has the shape [3]; it must have the shape [4]"},
      {[](auto& p) { p[0].strides[0] = 0; }, "its prediction 'click' is not contiguous"},
      {[](auto& p) { p[0] = TensorView::Vector(kValues, 4); },
       "its prediction 'click' for sample 0 is 3; it must be a probability from 0 to 1"},
      {[&](auto& p) { p[1] = TensorView::Vector(infinite, 4); },
       "its prediction 'price' for sample 2 is inf; it must be finite"},
      {[](auto& p) { p.pop_back(); }, "it gives predictions of 1 outputs, and it declares 2"},
  };
  for (const auto& [spoil, found] : cases)
    for (const base::StepKind kind : {base::StepKind::kTrain, base::StepKind::kInfer})
      EXPECT_THAT(ErrorOf(NetsOf<TwoSpoilt>(spoil), kind, 2), HasSubstr(found));
  EXPECT_EQ(
      ErrorOf(NetsOf<TwoSpoilt>([](auto& p) { p[1] = TensorView::Vector(kValues, 4); }), base::StepKind::kInfer, 2), "")
      << "an estimate of 3 is no error";
}

TEST(CheckedNet, LabelsOfAnotherNumberAreAnError) {
  const std::string two = ErrorOf(NetsOf<LogisticNet>(), base::StepKind::kTrain, 2);
  EXPECT_EQ(two, "batch 0: it has 8 labels, 2 for each of 4 samples; the model logistic reads 1");
  EXPECT_THAT(ErrorOf(NetsOf<TwoTaskNet>(), base::StepKind::kInfer, 1), HasSubstr("the model two tasks reads 2"));
  EXPECT_THAT(ErrorOf(NetsOf<LogisticNet>(), base::StepKind::kTrain, 0), HasSubstr("it has 0 labels"));
}

TEST(CheckedNet, AGradientThatCannotBeIsAnError) {
  const std::pair<SpoiltNet::SpoilGrads, std::string> cases[] = {
      {[](Views& lookups, Views&) { return lookups[0] = TensorView::Matrix(kValues, 2, 4), absl::OkStatus(); },
       "batch 0: the model logistic: its gradient of embedding 0 has the shape [2, 4]; it must have the shape [4, 2]"},
      {[](Views&, Views& parameters) { return parameters[0] = TensorView::Vector(kValues, 2), absl::OkStatus(); },
       "its gradient of parameter 0 has the shape [2]; it must have the shape [1]"},
      {[](Views& lookups, Views&) { return lookups.pop_back(), absl::OkStatus(); },
       "it gives gradients of 0 embeddings, and it declares 1"},
      {[](Views& lookups, Views&) { return std::swap(lookups[0].strides[0], lookups[0].strides[1]), absl::OkStatus(); },
       "its gradient of embedding 0 is not contiguous"},
      {[](Views&, Views&) -> absl::Status { throw std::runtime_error("no memory"); }, "it failed: no memory"},
  };
  for (const auto& [spoil, found] : cases)
    EXPECT_THAT(ErrorOf(NetsOf<SpoiltNet>(nullptr, spoil), base::StepKind::kTrain), HasSubstr(found));
}

TEST(CheckedNet, ANetThatCannotBeMadeIsAnError) {
  const auto thrown = CheckedNet::Make([]() -> absl::StatusOr<std::unique_ptr<Net>> { throw 7; });
  EXPECT_THAT(std::string(thrown.status().message()), StartsWith("the model cannot be made: it failed: it threw"));
  const auto refused =
      CheckedNet::Make([]() -> absl::StatusOr<std::unique_ptr<Net>> { return absl::NotFoundError("no file"); });
  EXPECT_EQ(refused.status().message(), "the model cannot be made: no file");
}

TEST(CheckedNet, ADeclarationThatCannotBeIsAnError) {
  class Declared : public LogisticNet {
   public:
    explicit Declared(ParameterSpec parameter) { spec_.dense = {std::move(parameter)}; }
  };
  const auto error = [](ParameterSpec parameter) {
    return std::string(CheckedNet::Make(NetsOf<Declared>(std::move(parameter))).status().message());
  };
  EXPECT_EQ(error({"w", {2, 0}, {}}), "the model logistic: it declares the parameter 'w' with an extent of 0");
  EXPECT_THAT(error({"w", std::vector<int64_t>(9, 1), {}}), HasSubstr("'w' with 9 dimensions; there may be 8"));
  EXPECT_THAT(std::string(CheckedNet::Make(NetsOf<LogisticNet>(0)).status().message()),
              HasSubstr("an embedding in table 'embedding' of 0 floats a row"));
}

TEST(CheckedNet, OutputsThatCannotBeAreAnError) {
  const auto error = [](const std::function<void(NetSpec&)>& spoil) {
    NetSpec spec = TwoTaskNet().spec();
    spoil(spec);
    return std::string(CheckNetSpec(spec).message());
  };
  EXPECT_EQ(error([](NetSpec&) {}), "");
  EXPECT_EQ(error([](NetSpec& s) { s.outputs[1].label = "cost"; }),
            "it declares the output 'price' of the label 'cost'; the labels are click, price");
  EXPECT_EQ(error([](NetSpec& s) { s.outputs[1].name = "click"; }), "it declares two outputs with the name 'click'");
  EXPECT_EQ(error([](NetSpec& s) { s.outputs.clear(); }),
            "it declares no output; a net has at least one prediction for a sample");
  EXPECT_THAT(error([](NetSpec& s) { s.outputs[0].name = ""; }), HasSubstr("an output with the name ''"));
  EXPECT_THAT(error([](NetSpec& s) { s.outputs[0].name = "a b"; }), HasSubstr("an output with the name 'a b'"));
  EXPECT_THAT(error([](NetSpec& s) { s.schema.sparse_slots.clear(); }),
              HasSubstr("of all slots, and schema.sparse_slots has none"));
  EXPECT_THAT(error([](NetSpec& s) { s.lookups[0].table = "dense"; }), HasSubstr("a table called 'dense'"));
  EXPECT_EQ(error([](NetSpec& s) { s.schema.labels.clear(); }), "it declares no label slot");
  EXPECT_EQ(error([](NetSpec& s) { s.schema.labels = {"click", "click"}; }), "it declares the label 'click' twice");
}

TEST(NetSpec, DataIsReadByWhatTheOutputsAre) {
  NetSpec spec;
  spec.schema.labels = {"click", "price", "stay", "both"};
  spec.outputs = {{.name = "click"},
                  {.name = "price", .metric = Metric::kRegression, .label = "price"},
                  {.name = "both", .metric = Metric::kBinary, .label = "both"},
                  {.name = "too", .metric = Metric::kRegression, .label = "both"}};
  EXPECT_THAT(spec.DataSchema().real_labels, ::testing::ElementsAre("price"));
  spec.schema.real_labels = {"stay"};
  EXPECT_THAT(spec.DataSchema().real_labels, ::testing::ElementsAre("price", "stay"));
  EXPECT_EQ(spec.LabelOf(spec.outputs[0]), 0) << "the first, if no label is named";
  EXPECT_EQ(spec.LabelOf(spec.outputs[3]), 3);
  EXPECT_TRUE(NetSpec().DataSchema().real_labels.empty());
}

TEST(CheckedNet, ARowOfAnotherWidthThanTheNetReadsIsAnError) {
  EXPECT_THAT(ErrorOf(NetsOf<LogisticNet>(3), base::StepKind::kInfer),
              HasSubstr("rows of 1 floats, and the model reads 3"));
}

}  // namespace
}  // namespace regatta::train
