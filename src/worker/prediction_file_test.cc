#include "worker/prediction_file.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/file.h"
#include "base/testing/test_folder.h"

namespace regatta::worker {
namespace {

// Two samples; prediction k of sample s of batch b is b + k + s / 8, a probability or any number.
struct MadeResult {
  MadeResult(uint64_t index, int outputs, int label_dim) {
    batch.index = index;
    batch.size = 2;
    batch.label_dim = label_dim;
    for (int s = 0; s < 2; ++s)
      for (int i = 0; i < label_dim; ++i) batch.labels.push_back(i == 0 ? static_cast<float>(s) : 0.1f);
    for (int k = 0; k < outputs; ++k)
      values.push_back({static_cast<float>(index) + static_cast<float>(k),
                        static_cast<float>(index) + static_cast<float>(k) + 0.125f});
    for (const std::vector<float>& output : values) views.push_back(base::TensorView::Vector(output.data(), 2));
    result.batch = &batch;
    result.predictions = views;
  }
  data::Batch batch;
  std::vector<std::vector<float>> values;
  std::vector<base::TensorView> views;
  train::StepResult result;
};

std::string Written(int outputs, int label_dim) {
  const base::TestFolder folder;
  data::Schema schema;
  schema.labels = {"click", "price"};
  schema.real_labels = {"price"};
  auto file = PredictionFile::Create(folder / "p.txt", schema).value();
  for (const uint64_t batch : {1, 0, 2})
    EXPECT_EQ(file->Add(MadeResult(batch, outputs, label_dim).result), absl::OkStatus());
  EXPECT_EQ(file->Commit(), absl::OkStatus());
  return base::ReadFile(folder / "p.txt").value();
}

TEST(PredictionFile, HasAPredictionAndALabelInTheOrderOfTheData) {
  EXPECT_EQ(Written(1, 1), "0 0\n0.125 1\n1 0\n1.125 1\n2 0\n2.125 1\n");
}

TEST(PredictionFile, HasAColumnForEachOutputAndLabel) {
  EXPECT_EQ(Written(2, 2),
            "0 1 0 0.100000001\n0.125 1.125 1 0.100000001\n1 2 0 0.100000001\n1.125 2.125 1 0.100000001\n"
            "2 3 0 0.100000001\n2.125 3.125 1 0.100000001\n");
}

TEST(PredictionFile, WithoutLabelsHasPredictionsAlone) {
  EXPECT_EQ(Written(1, 0), "0\n0.125\n1\n1.125\n2\n2.125\n");
  EXPECT_EQ(Written(2, 0), "0 1\n0.125 1.125\n1 2\n1.125 2.125\n2 3\n2.125 3.125\n");
}

}  // namespace
}  // namespace regatta::worker
