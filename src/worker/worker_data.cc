#include "worker/worker_data.h"

#include <glog/logging.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "data/dataset_factory.h"
#include "data/empty_dataset.h"

namespace regatta::worker {
namespace {

// What cannot be asked is left to be read, and to be complained of there.
bool HoldsBytes(const std::string& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  return error || bytes > 0;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesOfWorker(const fleet::Fleet& fleet, const std::string& path,
                                                       data::FileSplit split) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, data::ExpandFiles(path));
  ASSIGN_OR_RETURN(std::vector<std::string> files, fleet.SplitFiles(all, split));
  if (fleet.alone()) return files;
  LOG(INFO) << "worker " << fleet.worker_index() << " reads " << files.size() << " of " << all.size()
            << " files: " << absl::StrJoin(files, ", ");
  if (files.empty())
    LOG(WARNING) << path << ": " << all.size() << " files are too few for " << fleet.worker_num()
                 << " workers: none is left for worker " << fleet.worker_index()
                 << ", which trains nothing; cut them with regatta data split";
  // Files without a byte are an error where no worker has any other.
  if (!files.empty() && std::none_of(files.begin(), files.end(), HoldsBytes) &&
      std::any_of(all.begin(), all.end(), HoldsBytes)) {
    LOG(WARNING) << path << ": the files of worker " << fleet.worker_index() << " are empty: it trains nothing";
    files.clear();
  }
  return files;
}

absl::StatusOr<std::unique_ptr<data::Dataset>> OpenDataset(const fleet::Fleet& fleet, const model::Model& model,
                                                           const std::string& path, data::DatasetOptions options,
                                                           data::FileSplit split) {
  ASSIGN_OR_RETURN(options.files, FilesOfWorker(fleet, path, split));
  if (options.files.empty()) return std::make_unique<data::EmptyDataset>();
  data::Schema schema = model.spec().DataSchema();
  schema.label_use = options.schema.label_use;
  if (!options.schema.weight_slot.empty()) schema.weight_slot = options.schema.weight_slot;
  if (!options.schema.user_slot.empty()) schema.user_slot = options.schema.user_slot;
  options.schema = std::move(schema);
  return data::MakeDataset(options);
}

}  // namespace regatta::worker
