// The manifest of a checkpoint: what the save holds and where, as readable JSON that carries its own checksum.
// Thread-safety: plain values and pure functions.
// Invariants of a parsed manifest: the extents of a file follow each other without gap or overlap from its header to
// its end, so every byte is under a checksum; every extent's length follows from its items; names are unique.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "checkpoint/run_state.h"
#include "checkpoint/save_part.h"
#include "table/table_config.h"

namespace regatta::checkpoint {

inline constexpr uint32_t kMaxDataFiles = 64;
inline constexpr size_t kMaxSparseTables = 16'384;
inline constexpr uint32_t kWholeVersion = 1;    // of the manifest of a save that stands alone
inline constexpr uint32_t kPartialVersion = 2;  // of one that has a part or a base, which older readers must refuse
// Of one whose position has a window of more than 64 batches. Older readers would train the rest of them again.
inline constexpr uint32_t kWideVersion = 3;

// Consecutive blocks of one data file. Every block but the last is full.
struct Extent {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t items = 0;  // rows, floats or bytes
  uint32_t crc = 0;    // of the first 12 bytes of its block headers, which hold the payloads' checksums
  friend bool operator==(const Extent&, const Extent&) = default;
};

struct DataFileEntry {
  std::string name;
  uint64_t bytes = 0;
  uint32_t crc = 0;  // of the file header and the first 12 bytes of all block headers
  friend bool operator==(const DataFileEntry&, const DataFileEntry&) = default;
};

struct ShardExtent {
  uint32_t shard = 0;
  Extent extent;
  friend bool operator==(const ShardExtent&, const ShardExtent&) = default;
};

struct SavedSparse {
  table::SparseTableConfig config;
  int row_width = 0;
  int pull_width = 0;
  uint64_t rows = 0;
  std::vector<ShardExtent> extents;  // shards ascend
  friend bool operator==(const SavedSparse&, const SavedSparse&) = default;
};

// Elements [begin, begin + extent.items) of the values (array 0) or of state i (array i + 1).
struct DenseExtent {
  uint32_t array = 0;
  uint64_t begin = 0;
  Extent extent;
  friend bool operator==(const DenseExtent&, const DenseExtent&) = default;
};

struct SavedDense {
  table::DenseTableConfig config;
  uint32_t state_count = 0;
  uint64_t updates = 0;
  uint64_t size = 0;                 // elements of all parameters
  std::vector<DenseExtent> extents;  // by (array, begin), over the part's block
  friend bool operator==(const SavedDense&, const SavedDense&) = default;
};

struct SavedBlob {
  std::string name;
  Extent extent;
  friend bool operator==(const SavedBlob&, const SavedBlob&) = default;
};

struct Manifest {
  std::vector<DataFileEntry> files;
  std::vector<SavedSparse> sparse;
  std::optional<SavedDense> dense;
  RunState run;  // without its blobs; with the model, where the save says
  std::vector<SavedBlob> blobs;
  std::optional<SavePart> part;  // none: all shards and dense elements
  std::optional<SaveBase> base;  // none: all rows; else those that changed since, and all else

  uint32_t Version() const {
    if (!run.position.beyond.empty()) return kWideVersion;
    return part || base ? kPartialVersion : kWholeVersion;
  }
  PartRange Shards() const;      // that it holds
  PartRange DenseBlock() const;  // that it holds, of every array
  uint64_t TotalBytes() const;   // of the data files
  uint64_t TotalRows() const;
  const SavedSparse* FindSparse(std::string_view name) const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

std::string DataFileName(uint32_t index);  // "data-000"
// Bytes of an extent of so many items.
uint64_t ExtentBytes(uint64_t items, uint64_t item_bytes, uint64_t items_per_block);
uint64_t RowExtentBytes(uint64_t rows, int row_width);
uint64_t FloatExtentBytes(uint64_t floats);
uint64_t BlobExtentBytes(uint64_t bytes);

// Hashes of what decides the layout and meaning of the bytes. Stored in manifests: they never change.
uint64_t SchemaHash(const SavedSparse& table);
uint64_t SchemaHash(const SavedDense& table);

std::string FormatManifest(const Manifest& manifest);

enum class ManifestChecksum { kCheck, kIgnore };  // kIgnore lets a fuzzer behind the checksum
// DATA_LOSS names the field or byte that cannot be; UNIMPLEMENTED a newer format version.
absl::StatusOr<Manifest> ParseManifest(std::string_view text, ManifestChecksum checksum = ManifestChecksum::kCheck);

}  // namespace regatta::checkpoint
