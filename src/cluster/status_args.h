// The command line of `regatta status`, whose words arrive at regatta-pserver behind --status.
// Thread-safety: plain values, a pure function.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/environment.h"

namespace regatta::cluster {

inline constexpr char kStatusMode[] = "--status";

enum class StatusForm : uint8_t { kTable, kJson };

struct StatusArgs {
  std::vector<std::string> servers;  // host:port of each server's first port
  StatusForm form = StatusForm::kTable;
  std::chrono::duration<double> timeout{5};
  std::shared_ptr<const Credentials> credentials = nullptr;  // null: none
  std::string help;  // not empty: the user asked for help; print this and end well
};

// argv[0] is skipped. The servers are those of --servers, or of the environment (ReadServers). An error is the user's
// (exit 2) and says what to do.
absl::StatusOr<StatusArgs> ParseStatusArgs(int argc, const char* const* argv, const Getenv& getenv);

}  // namespace regatta::cluster
