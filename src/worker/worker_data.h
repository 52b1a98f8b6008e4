// The data of one worker: its share of the files, and the dataset over them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"
#include "data/dataset_options.h"
#include "data/file_list.h"
#include "fleet/fleet.h"
#include "model/model.h"

namespace regatta::worker {

// This worker's of the files that `path` stands for (a file, a folder, a glob). None where there are fewer files than
// workers, which is logged.
absl::StatusOr<std::vector<std::string>> FilesOfWorker(const fleet::Fleet& fleet, const std::string& path,
                                                       data::FileSplit split = data::FileSplit::kContiguous);

// A dataset of them as `model` reads them. `options` says how; its files and what the model's schema declares are
// filled in (options.schema.label_use = LabelUse::kAbsent reads data without labels, for Training::Predict). A worker
// without files gets a dataset without batches.
absl::StatusOr<std::unique_ptr<data::Dataset>> OpenDataset(const fleet::Fleet& fleet, const model::Model& model,
                                                           const std::string& path, data::DatasetOptions options = {},
                                                           data::FileSplit split = data::FileSplit::kContiguous);

}  // namespace regatta::worker
