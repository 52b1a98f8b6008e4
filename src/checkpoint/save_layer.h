// One save on the disk as a layer of what a reader shows: its rows lie over those of its base. Layers of several parts
// lie beside each other.
// Thread-safety: plain values and pure functions; opened files are concurrent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/data_file.h"
#include "checkpoint/manifest.h"

namespace regatta::checkpoint {

inline constexpr size_t kLongestChain = 1000;  // saves, before a reader takes it for damage

struct SaveLayer {
  std::string folder;
  Manifest manifest;
  uint64_t hash = 0;        // ManifestHash of the manifest
  uint32_t depth = 0;       // saves below it in its chain
  bool newest = true;       // of its chain
  uint32_t first_file = 0;  // number of its first file among those of all layers
  std::vector<std::shared_ptr<const DataFile>> files;
};

// The save at `folder` with its base, the base of that and so on, oldest first. DATA_LOSS names the folder where a base
// is missing, is another save than was meant, holds other tables or another part, or where bases go round in a circle.
absl::StatusOr<std::vector<SaveLayer>> OpenChain(const std::string& folder);

// That these are the parts of one snapshot, and all of them: each server once, every shard and dense element once, the
// same tables and run. Sorts them by server.
absl::Status CheckParts(std::vector<std::vector<SaveLayer>>& parts);

// What the layers hold together; numbers their files.
Manifest CombinedManifest(std::vector<SaveLayer>& layers);

}  // namespace regatta::checkpoint
