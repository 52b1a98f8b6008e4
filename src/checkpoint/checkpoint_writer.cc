#include "checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/key.h"
#include "checkpoint/block.h"
#include "checkpoint/data_file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/parallel.h"
#include "checkpoint/row_sorter.h"

namespace regatta::checkpoint {
namespace {

constexpr uint64_t kBytesPerFile = 32 << 20;  // a file more for each, so that threads and disks share large saves
constexpr uint32_t kMaxFiles = 8;
constexpr uint64_t kFloatsPerExtent = uint64_t{4} << 20;
static_assert(kFloatsPerExtent % kFloatsPerBlock == 0);
constexpr uint64_t kManifestAllowance = 1 << 20;

uint64_t DenseElements(const DenseContents& dense) {
  int64_t size = 0;
  for (const table::DenseParameterConfig& p : dense.config.parameters) size += p.size();
  return static_cast<uint64_t>(size);
}

PartRange ShardsOf(const SaveContents& contents) {
  return contents.part ? contents.part->shards : PartRange{0, base::kVirtualShards};
}

absl::Status CheckContents(const SaveContents& contents) {
  std::set<std::string> names;
  for (const RowSource* source : contents.sparse) {
    if (!names.insert(source->config().name).second)
      return absl::InvalidArgumentError(absl::StrCat("two sparse tables are named ", source->config().name));
    if (source->row_width() < 1 || source->row_width() > static_cast<int>(kMaxRowFloats))
      return absl::InvalidArgumentError(
          absl::StrCat("table ", source->config().name, ": rows of ", source->row_width(), " floats"));
  }
  if (contents.part) {
    if (!IsSaveId(contents.part->snapshot))
      return absl::InvalidArgumentError(absl::StrCat("a snapshot cannot be named '", contents.part->snapshot, "'"));
    if (contents.part->shards.begin > contents.part->shards.end || contents.part->shards.end > base::kVirtualShards ||
        contents.part->dense.begin > contents.part->dense.end || contents.part->server >= contents.part->servers)
      return absl::InvalidArgumentError(
          absl::StrCat("part ", contents.part->server, " of ", contents.part->servers, ": its ranges cannot be"));
  }
  if (!contents.dense) return absl::OkStatus();
  const uint64_t size = DenseElements(*contents.dense);
  const PartRange block = contents.part ? contents.part->dense : PartRange{0, size};
  if (contents.dense->arrays.empty()) return absl::InvalidArgumentError("dense table: no values");
  for (const auto& array : contents.dense->arrays)
    if (array.size() != block.size() || block.end > size)
      return absl::InvalidArgumentError(absl::StrCat("dense table: ", array.size(), " elements from ", block.begin,
                                                     " to ", block.end, " where the parameters have ", size));
  return absl::OkStatus();
}

// An incremental save is nothing without the very base that it was made for.
absl::Status CheckBase(const std::string& folder, const SaveBase& wanted) {
  if (!IsSaveId(wanted.id)) return absl::InvalidArgumentError(absl::StrCat("a base cannot be named '", wanted.id, "'"));
  const std::string path = BaseFolder(folder, wanted.id);
  if (std::filesystem::path(path).lexically_normal() == std::filesystem::path(folder).lexically_normal())
    return absl::FailedPreconditionError(absl::StrCat(folder, " cannot be its own base"));
  const absl::StatusOr<SaveBase> there = BaseAt(path);
  if (!there.ok()) return base::Annotate(there.status(), absl::StrCat("the base of ", folder));
  if (*there == wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is not the save that the changes are counted from; save ", folder, " whole"));
}

absl::StatusOr<Extent> WriteBytes(const void* data, uint64_t items, uint64_t item_bytes, DataFileWriter& out) {
  const uint64_t per_block = kBlockBytes / item_bytes;
  std::vector<char> block(kBlockBytes);
  out.BeginExtent();
  for (uint64_t done = 0; done < items; done += per_block) {
    const uint64_t n = std::min(per_block, items - done), bytes = n * item_bytes;
    std::memcpy(block.data(), static_cast<const char*>(data) + done * item_bytes, bytes);
    std::memset(block.data() + bytes, 0, RoundUp8(bytes) - bytes);
    RETURN_IF_ERROR(out.AppendBlock(block.data(), static_cast<uint32_t>(RoundUp8(bytes)), static_cast<uint32_t>(n)));
  }
  return out.EndExtent();
}

absl::Status WriteDense(const DenseContents& dense, uint64_t first, DataFileWriter& out, SavedDense& saved) {
  saved.config = dense.config;
  saved.updates = dense.updates;
  saved.state_count = static_cast<uint32_t>(dense.arrays.size() - 1);
  saved.size = DenseElements(dense);
  for (uint32_t array = 0; array < dense.arrays.size(); ++array) {
    const std::span<const float> floats = dense.arrays[array];
    for (uint64_t begin = 0; begin < floats.size(); begin += kFloatsPerExtent) {
      const uint64_t n = std::min(kFloatsPerExtent, floats.size() - begin);
      ASSIGN_OR_RETURN(Extent extent, WriteBytes(floats.data() + begin, n, 4, out));
      saved.extents.push_back(DenseExtent{array, first + begin, extent});
    }
  }
  return absl::OkStatus();
}

absl::Status WriteBlobs(const RunState& run, DataFileWriter& out, std::vector<SavedBlob>& saved) {
  for (const auto& [name, bytes] : run.blobs) {
    SavedBlob blob{name, {}};
    if (!bytes.empty()) {
      ASSIGN_OR_RETURN(blob.extent, WriteBytes(bytes.data(), bytes.size(), 1, out));
    }
    saved.push_back(std::move(blob));
  }
  return absl::OkStatus();
}

// One data file: its shards of every table; the first file also the dense parameters and the blobs.
struct FilePart {
  DataFileEntry file;
  std::vector<std::vector<ShardExtent>> sparse;  // by table
};

absl::Status WritePart(const std::string& folder, const SaveContents& contents, uint32_t index, uint32_t files,
                       FilePart& part, Manifest& manifest) {
  ASSIGN_OR_RETURN(auto out, DataFileWriter::Create(folder, index));
  if (index == 0) {
    const uint64_t first = contents.part ? contents.part->dense.begin : 0;
    if (contents.dense) RETURN_IF_ERROR(WriteDense(*contents.dense, first, *out, manifest.dense.emplace()));
    RETURN_IF_ERROR(WriteBlobs(contents.run, *out, manifest.blobs));
  }
  RowSorter sorter;
  const PartRange shards = ShardsOf(contents);
  const auto begin = static_cast<uint32_t>(shards.begin + shards.size() * index / files);
  const auto end = static_cast<uint32_t>(shards.begin + shards.size() * (index + 1) / files);
  part.sparse.resize(contents.sparse.size());
  for (size_t t = 0; t < contents.sparse.size(); ++t) {
    for (uint32_t shard = begin; shard < end; ++shard) {
      ASSIGN_OR_RETURN(Extent extent, sorter.Write(*contents.sparse[t], shard, *out));
      if (extent.items > 0) part.sparse[t].push_back(ShardExtent{shard, extent});
    }
  }
  ASSIGN_OR_RETURN(part.file, out->Finish());
  return absl::OkStatus();
}

absl::StatusOr<Manifest> WriteData(const std::string& folder, const SaveContents& contents) {
  const uint32_t files =
      static_cast<uint32_t>(std::clamp<uint64_t>(CheckpointBytes(contents) / kBytesPerFile, 1, kMaxFiles));
  Manifest manifest;
  std::vector<FilePart> parts(files);
  RETURN_IF_ERROR(RunJobs(files, [&](size_t i) {
    return WritePart(folder, contents, static_cast<uint32_t>(i), files, parts[i], manifest);
  }));
  for (const RowSource* source : contents.sparse)
    manifest.sparse.push_back(SavedSparse{source->config(), source->row_width(), source->pull_width(), 0, {}});
  for (const FilePart& part : parts) {
    manifest.files.push_back(part.file);
    for (size_t t = 0; t < part.sparse.size(); ++t) {
      for (const ShardExtent& e : part.sparse[t]) {
        manifest.sparse[t].rows += e.extent.items;
        manifest.sparse[t].extents.push_back(e);
      }
    }
  }
  manifest.part = contents.part;
  manifest.base = contents.base;
  manifest.run = contents.run;
  manifest.run.blobs.clear();
  return manifest;
}

absl::Status WriteManifest(const std::string& folder, const Manifest& manifest) {
  RETURN_IF_ERROR(base::Failpoint("save.manifest"));
  const std::string text = FormatManifest(manifest);
  const absl::StatusOr<Manifest> back = ParseManifest(text);
  if (!back.ok() || *back != manifest)
    return absl::InvalidArgumentError(
        absl::StrCat("this model cannot be saved: a name is not UTF-8 or a setting is not a finite number",
                     back.ok() ? "" : absl::StrCat(" (", back.status().message(), ")")));
  ASSIGN_OR_RETURN(auto file, base::AppendFile::Create(absl::StrCat(folder, "/", kManifestName)));
  RETURN_IF_ERROR(file->Append(text));
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(file->Close());
  return base::SyncFolder(folder);
}

// Only saves are replaced: a folder that holds anything else is the user's.
absl::Status CheckReplaceable(const std::string& folder) {
  std::error_code error;
  if (!base::Exists(folder) || base::Exists(absl::StrCat(folder, "/", kManifestName)) ||
      (std::filesystem::is_directory(folder, error) && std::filesystem::is_empty(folder, error)))
    return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(folder, " exists and is no save (it has no ", kManifestName, "): move it away or save elsewhere"));
}

// Puts `fresh` at `folder`; afterwards what was there before is gone.
absl::Status SwitchInto(const std::string& fresh, const std::string& folder) {
  RETURN_IF_ERROR(base::Failpoint("save.switch"));
  if (!base::Exists(folder)) return base::RenameDurably(fresh, folder);
  absl::Status exchanged = base::Failpoint("save.exchange");
  if (exchanged.ok()) exchanged = base::ExchangeDurably(fresh, folder);
  if (exchanged.ok()) return base::RemoveTree(fresh);
  // Some disks cannot exchange (NFS): two renames then, and CleanUpSave undoes half of them after a crash.
  const std::string replaced = folder + kReplacedSuffix;
  RETURN_IF_ERROR(base::RemoveTree(replaced));
  RETURN_IF_ERROR(base::RenameDurably(folder, replaced));
  RETURN_IF_ERROR(base::RenameDurably(fresh, folder));
  return base::RemoveTree(replaced);
}

absl::Status WriteBeside(const std::string& folder, const SaveContents& contents) {
  const std::string fresh = folder + kSavingSuffix;
  std::error_code error;
  RETURN_IF_ERROR(base::MakeFolders(std::filesystem::absolute(fresh, error).parent_path().string()));
  RETURN_IF_ERROR(base::MakeNewFolder(fresh));
  ASSIGN_OR_RETURN(const Manifest manifest, WriteData(fresh, contents));
  RETURN_IF_ERROR(WriteManifest(fresh, manifest));
  return SwitchInto(fresh, folder);
}

}  // namespace

uint64_t CheckpointBytes(const SaveContents& contents) {
  uint64_t bytes = kDataHeaderBytes;
  for (const RowSource* source : contents.sparse)
    for (uint64_t shard = ShardsOf(contents).begin; shard < ShardsOf(contents).end; ++shard)
      bytes += RowExtentBytes(source->ShardRows(static_cast<uint32_t>(shard)), source->row_width());
  if (contents.dense)
    for (const auto& array : contents.dense->arrays) bytes += FloatExtentBytes(array.size());
  for (const auto& [name, blob] : contents.run.blobs) bytes += BlobExtentBytes(blob.size());
  return bytes;
}

absl::Status CheckFreeSpace(const std::string& path, uint64_t needed, uint64_t free) {
  if (needed <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("not enough room to save ", path, ": ", needed, " bytes are needed and ", free, " are free"));
}

absl::Status CleanUpSave(const std::string& folder) {
  const std::string replaced = folder + kReplacedSuffix;
  if (!base::Exists(folder) && base::CheckOwnFolder(replaced).ok()) {
    RETURN_IF_ERROR(base::RenameDurably(replaced, folder));
  } else {
    RETURN_IF_ERROR(base::RemoveTree(replaced));
  }
  return base::RemoveTree(folder + kSavingSuffix);
}

absl::Status WriteCheckpoint(const std::string& folder, const SaveContents& contents) {
  RETURN_IF_ERROR(CheckContents(contents));
  if (contents.base) RETURN_IF_ERROR(CheckBase(folder, *contents.base));
  RETURN_IF_ERROR(CheckReplaceable(folder));
  RETURN_IF_ERROR(CleanUpSave(folder));
  ASSIGN_OR_RETURN(const uint64_t free, base::FreeBytes(folder));
  RETURN_IF_ERROR(CheckFreeSpace(folder, CheckpointBytes(contents) + kManifestAllowance, free));
  absl::Status status = WriteBeside(folder, contents);
  if (status.ok()) return status;
  absl::Status cleaned = CleanUpSave(folder);
  if (!cleaned.ok()) status = base::Annotate(status, absl::StrCat("(and then ", cleaned.message(), ")"));
  return base::Annotate(status, absl::StrCat("saving ", folder));
}

}  // namespace regatta::checkpoint
