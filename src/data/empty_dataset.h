// No batches: what a worker has where there are fewer files than workers.
// Thread-safety: as Dataset.
#pragma once

#include <memory>

#include "data/dataset.h"

namespace regatta::data {

class EmptyDataset final : public Dataset {
 public:
  absl::Status BeginPass(const base::DataPosition&) override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<Batch>> Next() override { return nullptr; }
  void Interrupt() override {}
  void Recycle(std::unique_ptr<Batch>) override {}
  absl::Status EndPass() override { return absl::OkStatus(); }
  Progress progress() const override { return {}; }
};

}  // namespace regatta::data
