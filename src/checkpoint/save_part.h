// What a save holds of a model that is saved in several: one server's part of a snapshot, or the changes since a base.
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/key.h"
#include "base/status.h"

namespace regatta::checkpoint {

// A save is a folder with this file.
inline constexpr char kManifestName[] = "MANIFEST";
inline constexpr uint64_t kMaxManifestBytes = 64 << 20;

// From begin up to, not including, end.
struct PartRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
  friend bool operator==(const PartRange&, const PartRange&) = default;
};

// Server `server` of `servers` saves a range of virtual shards of every table and a block of the dense elements. The
// parts of one snapshot hold every shard and element once.
struct SavePart {
  std::string snapshot;  // names the snapshot: the parts of one have the same
  uint32_t server = 0;
  uint32_t servers = 1;
  PartRange shards{0, base::kVirtualShards};
  PartRange dense;  // elements of the whole array
  friend bool operator==(const SavePart&, const SavePart&) = default;
};

// The save that an incremental one adds to: it lies beside it under the name `id`.
struct SaveBase {
  std::string id;
  uint64_t manifest = 0;  // ManifestHash of its manifest
  friend bool operator==(const SaveBase&, const SaveBase&) = default;
};

// Names of snapshots and bases: [A-Za-z0-9._-]{1,64}, neither "." nor "..".
bool IsSaveId(std::string_view id);

std::string PartName(uint32_t server);  // "part-000", the folder of a server's part inside that of the save
bool IsPartName(std::string_view name);

// The folder of base `id` of the save at `folder`: beside it; of root/5/part-001 it is root/id/part-001.
std::string BaseFolder(const std::string& folder, const std::string& id);
// The save at `folder` as the base of one written later. NOT_FOUND where there is none.
absl::StatusOr<SaveBase> BaseAt(const std::string& folder);

// A hash of a manifest's text. Stored in manifests: it never changes.
uint64_t ManifestHash(std::string_view text);

}  // namespace regatta::checkpoint
