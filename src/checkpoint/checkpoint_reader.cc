#include "checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/mutex.h"
#include "checkpoint/block.h"
#include "checkpoint/parallel.h"
#include "checkpoint/schema_difference.h"

namespace regatta::checkpoint {
namespace {

constexpr size_t kReadWindow = 256 << 10;
constexpr uint64_t kReadAhead = 4 << 20;

// Keeps the disk some megabytes ahead of a reader that goes through a file from its begin to its end.
class ReadAhead {
 public:
  explicit ReadAhead(const DataFile& file) : file_(file) {}
  void At(uint64_t offset) {
    if (offset + kReadAhead <= asked_) return;
    const uint64_t from = std::max(asked_, offset);
    file_.WillNeed(from, kReadAhead);
    asked_ = from + kReadAhead;
  }

 private:
  const DataFile& file_;
  uint64_t asked_ = 0;
};

// An extent with what it takes to read it.
struct Task {
  Extent extent;
  const SavedSparse* sparse = nullptr;  // nullptr: floats or bytes
  size_t table = 0;
  uint32_t shard = 0;
  uint64_t item_bytes = 0;
  uint64_t items_per_block = 0;
};

// All extents by file, in the order of their offsets.
std::vector<std::vector<Task>> TasksByFile(const Manifest& m) {
  std::vector<std::vector<Task>> tasks(m.files.size());
  for (size_t t = 0; t < m.sparse.size(); ++t) {
    const uint64_t width = static_cast<uint64_t>(m.sparse[t].row_width);
    for (const ShardExtent& e : m.sparse[t].extents)
      tasks[e.extent.file].push_back(Task{e.extent, &m.sparse[t], t, e.shard, RowBytes(width), RowsPerBlock(width)});
  }
  if (m.dense)
    for (const DenseExtent& e : m.dense->extents)
      tasks[e.extent.file].push_back(Task{e.extent, nullptr, 0, 0, 4, kFloatsPerBlock});
  for (const SavedBlob& b : m.blobs)
    if (b.extent.items > 0) tasks[b.extent.file].push_back(Task{b.extent, nullptr, 0, 0, 1, kBlockBytes});
  for (auto& list : tasks)
    std::sort(list.begin(), list.end(), [](const Task& a, const Task& b) { return a.extent.offset < b.extent.offset; });
  return tasks;
}

// Makes rows of a table out of saved ones: as they are, or the weights with a state of zeros.
class RowFitter {
 public:
  RowFitter(const SavedSparse& saved, const table::SparseTable& table)
      : from_(static_cast<size_t>(saved.row_width)),
        to_(static_cast<size_t>(table.row_width())),
        copied_(static_cast<size_t>(saved.pull_width)) {}
  std::span<const float> Fit(std::span<const float> rows, LoadKind kind) {
    if (kind == LoadKind::kTraining || from_ == to_) return rows;
    const size_t n = rows.size() / from_;
    fitted_.assign(n * to_, 0.0f);
    for (size_t i = 0; i < n; ++i) std::memcpy(&fitted_[i * to_], &rows[i * from_], copied_ * sizeof(float));
    return fitted_;
  }

 private:
  const size_t from_, to_, copied_;
  std::vector<float> fitted_;
};

absl::Status LoadShard(ShardCursor& cursor, const DataFile& file, const Task& task, table::SparseTable& table,
                       LoadKind kind) {
  RowFitter fitter(*task.sparse, table);
  cursor.Start(file, ShardExtent{task.shard, task.extent}, task.sparse->row_width);
  while (true) {
    ASSIGN_OR_RETURN(const bool more, cursor.NextBlock());
    if (!more) return absl::OkStatus();
    RETURN_IF_ERROR(table.Load(task.shard, cursor.keys(), fitter.Fit(cursor.rows(), kind)));
  }
}

// Reads extents of one file for their checks alone, adding their block headers to the file's checksum.
class ExtentVerifier {
 public:
  ExtentVerifier(const DataFile& file, uint32_t file_crc, const std::function<void(uint64_t)>& add)
      : file_(file), file_crc_(file_crc), add_(add) {}

  absl::Status Verify(const Task& task) {
    if (task.sparse == nullptr) {
      blocks_.Start(file_, task.extent, task.item_bytes, task.items_per_block);
      return Walk(blocks_, [this] { return blocks_.Next(); });
    }
    cursor_.Start(file_, ShardExtent{task.shard, task.extent}, task.sparse->row_width);
    return Walk(cursor_.blocks(), [this] { return cursor_.NextBlock(); });
  }
  uint32_t file_crc() const { return file_crc_; }

 private:
  template <typename Next>
  absl::Status Walk(const BlockReader& blocks, const Next& next) {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, next());
      if (!more) return absl::OkStatus();
      file_crc_ = blocks.header().AddTo(file_crc_);
      add_(sizeof(BlockHeader) + blocks.header().payload_bytes);
    }
  }

  const DataFile& file_;
  uint32_t file_crc_;
  const std::function<void(uint64_t)>& add_;
  // Their windows serve all extents: most are far smaller.
  ShardCursor cursor_{kReadWindow};
  BlockReader blocks_{kReadWindow};
};

}  // namespace

CheckpointReader::CheckpointReader(std::string folder, std::vector<SaveLayer> layers) : folder_(std::move(folder)) {
  manifest_ = std::make_shared<const Manifest>(CombinedManifest(layers));
  for (const SaveLayer& layer : layers) files_.insert(files_.end(), layer.files.begin(), layer.files.end());
  layers_ = std::make_shared<const std::vector<SaveLayer>>(std::move(layers));
}

absl::StatusOr<CheckpointReader> CheckpointReader::Open(const std::string& folder) {
  ASSIGN_OR_RETURN(CheckpointReader reader, OpenPart(folder));
  const std::optional<SavePart>& part = reader.manifest().part;
  if (!part || part->servers == 1) return reader;
  return absl::FailedPreconditionError(absl::StrCat(folder, " holds part ", part->server, " of ", part->servers,
                                                    " of snapshot ", part->snapshot,
                                                    ": put the parts into one folder as part-000, part-001, …"));
}

absl::StatusOr<CheckpointReader> CheckpointReader::OpenPart(const std::string& folder) {
  if (base::Exists(absl::StrCat(folder, "/", kManifestName)) || !base::Exists(absl::StrCat(folder, "/", PartName(0)))) {
    ASSIGN_OR_RETURN(std::vector<SaveLayer> chain, OpenChain(folder));
    return CheckpointReader(folder, std::move(chain));
  }
  std::vector<std::string> parts;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (IsPartName(it->path().filename().string())) parts.push_back(it->path().string());
  if (error) return absl::UnavailableError(absl::StrCat("cannot list ", folder, ": ", error.message()));
  std::sort(parts.begin(), parts.end());
  ASSIGN_OR_RETURN(CheckpointReader reader, OpenParts(parts));
  reader.folder_ = folder;
  return reader;
}

absl::StatusOr<CheckpointReader> CheckpointReader::OpenParts(const std::vector<std::string>& folders) {
  if (folders.empty()) return absl::InvalidArgumentError("no parts of a save were given");
  std::vector<std::vector<SaveLayer>> parts;
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(std::vector<SaveLayer> chain, OpenChain(folder));
    parts.push_back(std::move(chain));
  }
  RETURN_IF_ERROR(CheckParts(parts));
  const std::string first = parts[0].back().folder;
  std::vector<SaveLayer> layers;
  for (std::vector<SaveLayer>& part : parts)
    for (SaveLayer& layer : part) layers.push_back(std::move(layer));
  std::stable_sort(layers.begin(), layers.end(),
                   [](const SaveLayer& a, const SaveLayer& b) { return a.depth < b.depth; });
  return CheckpointReader(first, std::move(layers));
}

absl::StatusOr<RunState> CheckpointReader::ReadRunState() const {
  RunState run = manifest_->run;
  for (const SavedBlob& blob : manifest_->blobs) {
    ASSIGN_OR_RETURN(run.blobs[blob.name], ReadBlob(blob.name));
  }
  return run;
}

absl::Status CheckpointReader::LoadInto(const ModelTables& model, LoadKind kind) const {
  if (manifest_->part && manifest_->part->servers > 1)
    return absl::FailedPreconditionError(absl::StrCat(folder_, " is a part of a save: it cannot fill a model"));
  const std::vector<std::string> differences = SchemaDifferences(*manifest_, model, kind);
  if (!differences.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("the save ", folder_, " does not fit this model: ", absl::StrJoin(differences, "; ")));
  for (table::SparseTable* table : model.sparse) table->Clear();
  absl::Status status = LoadSparse(model, kind);
  if (status.ok() && model.dense) status = LoadDense(*model.dense, kind);
  if (!status.ok())
    for (table::SparseTable* table : model.sparse) table->Clear();
  return status;
}

// A layer lies over the one below it: all files of one depth, then those of the next.
absl::Status CheckpointReader::LoadSparse(const ModelTables& model, LoadKind kind) const {
  std::vector<table::SparseTable*> targets(manifest_->sparse.size(), nullptr);
  for (table::SparseTable* table : model.sparse)
    targets[manifest_->FindSparse(table->config().name) - manifest_->sparse.data()] = table;
  const std::vector<std::vector<Task>> tasks = TasksByFile(*manifest_);
  for (size_t first = 0; first < layers_->size();) {
    size_t last = first;
    while (last < layers_->size() && (*layers_)[last].depth == (*layers_)[first].depth) ++last;
    const size_t begin = (*layers_)[first].first_file;
    const size_t end = last < layers_->size() ? (*layers_)[last].first_file : files_.size();
    RETURN_IF_ERROR(RunJobs(end - begin, [&](size_t i) -> absl::Status {
      const size_t file = begin + i;
      ShardCursor cursor(kReadWindow);
      ReadAhead ahead(*files_[file]);
      for (const Task& task : tasks[file]) {
        if (!task.sparse || !targets[task.table]) continue;
        ahead.At(task.extent.offset);
        absl::Status status = LoadShard(cursor, *files_[file], task, *targets[task.table], kind);
        if (!status.ok())
          return base::Annotate(status, absl::StrCat("table ", task.sparse->config.name, ": shard ", task.shard));
      }
      return absl::OkStatus();
    }));
    first = last;
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::ForEachBlock(size_t table, const BlockFn& fn) const {
  const SavedSparse& saved = manifest_->sparse[table];
  ShardCursor cursor(kReadWindow);
  for (size_t first = 0; first < saved.extents.size();) {
    const uint32_t shard = saved.extents[first].shard;
    size_t last = first;
    while (last < saved.extents.size() && saved.extents[last].shard == shard) ++last;
    absl::Status status;
    if (last - first > 1) {
      status = MergeBlocks(saved, std::span(saved.extents).subspan(first, last - first), fn);
    } else {
      cursor.Start(*files_[saved.extents[first].extent.file], saved.extents[first], saved.row_width);
      while (status.ok()) {
        const absl::StatusOr<bool> more = cursor.NextBlock();
        if (more.ok() && !*more) break;
        status = more.ok() ? fn(shard, cursor.keys(), cursor.rows()) : more.status();
      }
    }
    if (!status.ok()) return base::Annotate(status, absl::StrCat("table ", saved.config.name, ": shard ", shard));
    first = last;
  }
  return absl::OkStatus();
}

// The blocks of a shard that several saves of a chain have.
absl::Status CheckpointReader::MergeBlocks(const SavedSparse& table, std::span<const ShardExtent> extents,
                                           const BlockFn& fn) const {
  MergedRows merged(files_, extents, table.row_width);
  std::vector<base::Key> keys;
  std::vector<float> rows;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, merged.Next());
    if (more) {
      keys.push_back(merged.key());
      rows.insert(rows.end(), merged.row().begin(), merged.row().end());
      if (keys.size() < RowsPerBlock(static_cast<uint64_t>(table.row_width))) continue;
    }
    if (!keys.empty()) RETURN_IF_ERROR(fn(extents[0].shard, keys, rows));
    if (!more) return absl::OkStatus();
    keys.clear();
    rows.clear();
  }
}

absl::StatusOr<uint64_t> CheckpointReader::CountRows(size_t table) const {
  if (layers_->back().depth == 0) return manifest_->sparse[table].rows;
  uint64_t rows = 0;
  RETURN_IF_ERROR(ForEachBlock(table, [&](uint32_t, std::span<const base::Key> keys, std::span<const float>) {
    rows += keys.size();
    return absl::OkStatus();
  }));
  return rows;
}

absl::Status CheckpointReader::LoadDense(table::DenseTable& table, LoadKind kind) const {
  const SavedDense& saved = *manifest_->dense;
  std::vector<float> values(saved.size);
  RETURN_IF_ERROR(base::Annotate(ReadDense(0, 0, values), "dense values"));
  std::vector<std::vector<float>> states(static_cast<size_t>(table.state_count()), std::vector<float>(saved.size));
  if (kind == LoadKind::kTraining)
    for (uint32_t i = 0; i < states.size(); ++i)
      RETURN_IF_ERROR(base::Annotate(ReadDense(i + 1, 0, states[i]), absl::StrCat("dense state ", i)));
  return table.Load(values, states, saved.updates);
}

std::vector<absl::Status> CheckpointReader::Verify(const ProgressFn& progress) const {
  base::Mutex mu;
  std::vector<absl::Status> damage;
  uint64_t done = 0;
  const uint64_t total = manifest_->TotalBytes();
  // By the layers' own manifests: what a newer save replaces counts too.
  std::vector<std::vector<Task>> tasks;
  std::vector<std::pair<const SaveLayer*, uint32_t>> places;  // of each file: its layer and its number there
  for (const SaveLayer& layer : *layers_) {
    for (std::vector<Task>& list : TasksByFile(layer.manifest)) {
      places.emplace_back(&layer, static_cast<uint32_t>(tasks.size()) - layer.first_file);
      tasks.push_back(std::move(list));
    }
  }
  const std::function<void(uint64_t)> add = [&](uint64_t bytes) {
    if (!progress) return;
    base::MutexLock lock(mu);
    done += bytes;
    progress(done, total);
  };
  const auto report = [&](absl::Status status) {
    base::MutexLock lock(mu);
    damage.push_back(std::move(status));
  };
  (void)RunJobs(tasks.size(), [&](size_t file) {
    const auto& [layer, number] = places[file];
    const std::string header = DataHeader(number);
    ExtentVerifier verifier(*files_[file], base::Crc32c(header.data(), header.size()), add);
    bool whole = true;
    for (const Task& task : tasks[file]) {
      absl::Status status = verifier.Verify(task);
      if (status.ok()) continue;
      whole = false;
      report(task.sparse ? base::Annotate(status, absl::StrCat("table ", task.sparse->config.name)) : status);
    }
    if (whole && verifier.file_crc() != layer->manifest.files[number].crc)
      report(files_[file]->Damage(0, "the file's checksum is not the one of the manifest"));
    return absl::OkStatus();
  });
  return damage;
}

absl::StatusOr<std::vector<float>> CheckpointReader::FindRow(size_t table, base::Key key) const {
  const SavedSparse& t = manifest_->sparse[table];
  const uint32_t shard = base::ShardOf(key);
  // Newest first.
  auto it = std::upper_bound(t.extents.begin(), t.extents.end(), shard,
                             [](uint32_t s, const ShardExtent& e) { return s < e.shard; });
  while (it != t.extents.begin() && (--it)->shard == shard) {
    ShardCursor cursor(kReadWindow);
    cursor.Start(*files_[it->extent.file], *it, t.row_width);
    while (true) {
      ASSIGN_OR_RETURN(const bool more, cursor.NextBlock());
      if (!more || cursor.keys().front() > key) break;
      const auto at = std::lower_bound(cursor.keys().begin(), cursor.keys().end(), key);
      if (at == cursor.keys().end() || *at != key) continue;
      const size_t width = static_cast<size_t>(t.row_width);
      const auto row = cursor.rows().subspan(static_cast<size_t>(at - cursor.keys().begin()) * width, width);
      return std::vector<float>(row.begin(), row.end());
    }
  }
  return absl::NotFoundError(absl::StrCat("table ", t.config.name, " has no key ", key));
}

absl::Status CheckpointReader::ReadDense(uint32_t array, uint64_t begin, std::span<float> out) const {
  const PartRange held = manifest_->DenseBlock();
  if (!manifest_->dense || array > manifest_->dense->state_count || begin < held.begin || begin > held.end ||
      out.size() > held.end - begin)
    return absl::OutOfRangeError(absl::StrCat(folder_, " holds no such dense elements"));
  if (out.empty()) return absl::OkStatus();
  const uint64_t end = begin + out.size();
  BlockReader blocks(kReadWindow);
  const std::vector<DenseExtent>& extents = manifest_->dense->extents;
  auto at_extent = std::partition_point(extents.begin(), extents.end(), [&](const DenseExtent& e) {
    return std::make_pair(e.array, e.begin + e.extent.items) <= std::make_pair(array, begin);
  });
  for (; at_extent != extents.end() && at_extent->array == array && at_extent->begin < end; ++at_extent) {
    const DenseExtent& e = *at_extent;
    blocks.Start(*files_[e.extent.file], e.extent, 4, kFloatsPerBlock);
    if (begin > e.begin) blocks.SkipTo(begin - e.begin);
    while (true) {
      ASSIGN_OR_RETURN(const bool more, blocks.Next());
      const uint64_t at = e.begin + blocks.first_item();
      if (!more || at >= end) break;
      const uint64_t from = std::max(begin, at), to = std::min(end, at + blocks.items());
      std::memcpy(&out[from - begin], blocks.payload() + (from - at) * 4, (to - from) * 4);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CheckpointReader::ReadBlob(std::string_view name) const {
  for (const SavedBlob& blob : manifest_->blobs) {
    if (blob.name != name) continue;
    std::string bytes;
    if (blob.extent.items == 0) return bytes;
    BlockReader blocks(kReadWindow);
    blocks.Start(*files_[blob.extent.file], blob.extent, 1, kBlockBytes);
    while (true) {
      ASSIGN_OR_RETURN(const bool more, blocks.Next());
      if (!more) return bytes;
      bytes.append(blocks.payload(), blocks.items());
    }
  }
  return absl::NotFoundError(absl::StrCat(folder_, " holds no ", base::View(name)));
}

}  // namespace regatta::checkpoint
