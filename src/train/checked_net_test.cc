#include "train/checked_net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "train/testing/embedded_job.h"
#include "train/testing/logistic_net.h"

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
using testing::Watcher;

using Views = std::vector<TensorView>;

const float kValues[8] = {3, 3, 3, 3, 3, 3, 3, 3};

// The error of a pass of one thread. Batches have 4 samples and 2 slots. A failed step must leave no row.
std::string ErrorOf(const NetMaker& nets, base::StepKind kind) {
  Embedded setup(1);
  Numbers data(3);
  Watcher watcher;
  const auto end = Trainer(nets, *setup.local, setup.options).RunPass(data, kind, {}, 0, watcher);
  EXPECT_EQ(setup.sparse->rows(), 0u);
  EXPECT_EQ(setup.dense->updates(), 0u);
  return std::string(end.status().message());
}

TEST(CheckedNet, AnOutputThatCannotBeIsAnError) {
  const std::pair<SpoiltNet::Spoil, std::string> cases[] = {
      {[](NetOutput& o) { return o.predictions = TensorView::Matrix(kValues, 4, 2), absl::OkStatus(); },
       "batch 0: the model logistic: its prediction has the shape [4, 2]; it must have the shape [4], one value for"},
      {[](NetOutput& o) { return o.predictions = TensorView::Vector(kValues, 2), absl::OkStatus(); },
       "its prediction has the shape [2]"},
      {[](NetOutput& o) { return o.loss = TensorView::Matrix(kValues, 4, 1), absl::OkStatus(); },
       "its loss has the shape [4, 1]"},
      {[](NetOutput& o) { return o.loss = TensorView::Of(kValues, {}), absl::OkStatus(); },
       "its loss has the shape []"},
      {[](NetOutput& o) { return o.predictions = {}, absl::OkStatus(); }, "its prediction is not set; it must have"},
      {[](NetOutput& o) { return o.loss.dtype = base::DType::kFloat64, absl::OkStatus(); },
       "its loss has the type float64; it must be float32"},
      {[](NetOutput& o) { return o.loss.strides[0] = 0, absl::OkStatus(); }, "its loss is not contiguous"},
      {[](NetOutput& o) { return o.loss.device = base::Device::kCuda, absl::OkStatus(); },
       "its loss is not in the memory of the CPU"},
      {[](NetOutput& o) { return o.predictions = TensorView::Vector(kValues, 4), absl::OkStatus(); },
       "its prediction for sample 0 is 3; it must be a probability from 0 to 1"},
      {[](NetOutput&) -> absl::Status { throw std::runtime_error("no such layer"); },
       "batch 0: the model logistic: it failed: no such layer"},
      {[](NetOutput&) -> absl::Status { throw 7; },
       "the model logistic: it failed: it threw something that is no std::exception"},
      {[](NetOutput&) { return absl::UnavailableError("the device is lost"); },
       "the model logistic: the device is lost"},
  };
  for (const auto& [spoil, found] : cases)
    for (const base::StepKind kind : {base::StepKind::kTrain, base::StepKind::kInfer})
      EXPECT_THAT(ErrorOf(NetsOf<SpoiltNet>(spoil, nullptr), kind), HasSubstr(found));
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

TEST(CheckedNet, ARowOfAnotherWidthThanTheNetReadsIsAnError) {
  EXPECT_THAT(ErrorOf(NetsOf<LogisticNet>(3), base::StepKind::kInfer),
              HasSubstr("rows of 1 floats, and the model reads 3"));
}

}  // namespace
}  // namespace regatta::train
