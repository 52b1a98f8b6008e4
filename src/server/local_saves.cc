#include "server/local_saves.h"

#include <glog/logging.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "base/file.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"

namespace regatta::server {
namespace fs = std::filesystem;
namespace {

constexpr char kStateBlob[] = "server";
constexpr size_t kMostStateBytes = (size_t{1} << 31) - 1;  // of a protobuf message

}  // namespace

std::string LocalSaves::FolderOf(uint64_t number) const { return absl::StrCat(folder_, "/", number); }

absl::StatusOr<LocalSaves::Kept> LocalSaves::Read(uint64_t number) const {
  ASSIGN_OR_RETURN(const auto reader, checkpoint::CheckpointReader::OpenPart(FolderOf(number)));
  ASSIGN_OR_RETURN(const std::string bytes, reader.ReadBlob(kStateBlob));
  Kept kept;
  kept.number = number;
  if (!kept.state.ParseFromString(bytes))
    return absl::DataLossError(absl::StrCat(FolderOf(number), ": the state of the server cannot be read"));
  kept.whole = !reader.manifest().base.has_value();
  return kept;
}

absl::StatusOr<std::vector<LocalSaves::Kept>> LocalSaves::List() const {
  const absl::Status there = base::CheckOwnFolder(folder_);
  if (absl::IsNotFound(there)) return std::vector<Kept>();
  RETURN_IF_ERROR(there);
  std::vector<uint64_t> numbers;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    uint64_t number = 0;
    if (absl::SimpleAtoi(entry.path().filename().string(), &number)) {
      RETURN_IF_ERROR(base::CheckOwnFolder(entry.path().string()));
      numbers.push_back(number);
    } else {
      RETURN_IF_ERROR(base::RemoveTree(entry.path().string()));
    }
  }
  std::sort(numbers.begin(), numbers.end());
  std::vector<Kept> kept;
  for (const uint64_t number : numbers) {
    absl::StatusOr<Kept> read = Read(number);
    if (read.ok()) {
      kept.push_back(*std::move(read));
    } else {
      LOG(WARNING) << read.status().message() << "; passed over";
    }
  }
  return kept;
}

absl::StatusOr<std::optional<LocalSaves::Loaded>> LocalSaves::LoadNewest(const table::ModelConfig& configs,
                                                                         const ServerPlace& place) const {
  ASSIGN_OR_RETURN(std::vector<Kept> kept, List());
  std::vector<uint64_t> damaged;
  for (; !kept.empty(); kept.pop_back()) {
    ASSIGN_OR_RETURN(auto tables, TableShare::Create(configs, place));
    const absl::Status filled = tables->LoadPart(FolderOf(kept.back().number));
    if (filled.ok()) {
      for (const uint64_t number : damaged) RETURN_IF_ERROR(Remove(number));
      LOG(INFO) << "loaded checkpoint " << FolderOf(kept.back().number) << ": " << tables->rows() << " rows";
      return Loaded{std::move(tables), std::move(kept.back().state)};
    }
    LOG(WARNING) << filled.message() << "; the one before it is tried";
    damaged.push_back(kept.back().number);
  }
  return std::nullopt;
}

absl::Status LocalSaves::Write(uint64_t number, checkpoint::ModelSnapshot& snapshot,
                               const ps::ServerState& state) const {
  RETURN_IF_ERROR(base::MakeOwnFolder(folder_));
  if (const size_t bytes = state.ByteSizeLong(); bytes > kMostStateBytes)
    return absl::ResourceExhaustedError(absl::StrCat("the state of the server's lanes is ", bytes,
                                                     " bytes; a checkpoint holds ", kMostStateBytes,
                                                     ": use more servers, or a smaller runner.geo_step"));
  ASSIGN_OR_RETURN(checkpoint::SaveContents contents, snapshot.Contents());
  contents.run.blobs[kStateBlob] = state.SerializeAsString();
  return checkpoint::WriteCheckpoint(FolderOf(number), contents);
}

absl::Status LocalSaves::Remove(uint64_t number) const {
  RETURN_IF_ERROR(base::CheckOwnFolder(folder_));
  return base::RemoveTree(FolderOf(number));
}

absl::Status LocalSaves::RemoveAll() const { return base::RemoveTree(folder_); }

}  // namespace regatta::server
