// Makes the dataset that its options ask for; the format of the files is detected where it is not given.
// Thread-safety: a pure function.
#pragma once

#include <memory>

#include "base/status.h"
#include "data/dataset.h"
#include "data/dataset_options.h"

namespace regatta::data {

absl::StatusOr<std::unique_ptr<Dataset>> MakeDataset(const DatasetOptions& options);

}  // namespace regatta::data
