// Writes a checkpoint: data files and manifest into a folder beside, everything synced, then one rename (or exchange)
// into place. Whatever happens, `folder` holds the old save or the new one.
// Saves of equal models are equal bytes, whatever the order of arrival or the number of threads.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/run_state.h"
#include "checkpoint/save_contents.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::checkpoint {

// Folders beside a save that only an interrupted writer leaves behind.
inline constexpr char kSavingSuffix[] = ".saving";      // being written, or the replaced one being removed
inline constexpr char kReplacedSuffix[] = ".replaced";  // the old save, where the disk cannot exchange folders

// Replaces what `folder` holds, which must be a save or nothing. RESOURCE_EXHAUSTED, before anything is touched, where
// the disk has not enough room.
absl::Status WriteCheckpoint(const std::string& folder, const SaveContents& contents);

// Bytes that the save would take.
uint64_t CheckpointBytes(const SaveContents& contents);
// RESOURCE_EXHAUSTED that says how many bytes `path` needs and how many are free.
absl::Status CheckFreeSpace(const std::string& path, uint64_t needed, uint64_t free);

// Makes `folder` whole again after an interrupted replacement, and removes what it left behind.
absl::Status CleanUpSave(const std::string& folder);

}  // namespace regatta::checkpoint
