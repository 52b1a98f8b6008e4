// The small files of a save root: RUN (what became of the run), CURRENT (its complete saves, newest first), BEST.
// Thread-safety: plain values; each file is replaced atomically.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regatta::checkpoint {

enum class RunPhase : uint8_t { kRunning, kInterrupted, kFinished };

struct RunRecord {
  RunPhase phase = RunPhase::kRunning;  // kRunning without a lock = interrupted by a crash
  std::string id;                       // tells runs at one root apart
  std::string started;                  // UTC
  uint64_t config_hash = 0;
  int64_t pid = 0;
  std::map<std::string, std::string> config;  // what the run goes by: key → value as JSON; {} where not known

  static RunRecord Begin(uint64_t config_hash);
};

struct CurrentRecord {
  std::string run_id;
  std::vector<std::string> saves;  // names relative to the root, newest first
};

// "12" or "checkpoint/3-200": the names that saves have under a root.
bool IsEpochName(std::string_view name);
bool IsCheckpointName(std::string_view name);  // "checkpoint/3-200"

// NOT_FOUND where there is none, DATA_LOSS where it cannot be read.
absl::StatusOr<RunRecord> ReadRunRecord(const std::string& root);
absl::Status WriteRunRecord(const std::string& root, const RunRecord& record);
absl::StatusOr<CurrentRecord> ReadCurrent(const std::string& root);
absl::Status WriteCurrent(const std::string& root, const CurrentRecord& record);
// The name of the best epoch.
absl::StatusOr<std::string> ReadBest(const std::string& root);
absl::Status WriteBest(const std::string& root, const std::string& name);

}  // namespace regatta::checkpoint
