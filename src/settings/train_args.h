// The command line of train, infer and config, parsed in the worker's executable.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/credentials.h"

namespace regatta::settings {

enum class Verb : uint8_t { kTrain, kInfer, kConfig };

struct TrainArgs {
  Verb verb = Verb::kTrain;
  std::string config;                  // -m
  std::vector<std::string> overrides;  // -o, in order
  bool resume = false;
  bool overwrite = false;
  bool dry_run = false;
  bool json = false;
  bool keys = false;      // config --keys
  bool insecure = false;  // --insecure: servers may be outside this machine
  cluster::CredentialFiles credentials;
  std::optional<int> metrics_port;  // 0 = any free one; absent = none
  std::string trace;                // "" = none
  std::string predictions;          // "" = none
  bool no_labels = false;           // infer: the data has no labels, predictions alone are wanted
  std::string help;                 // not empty: the user asked for help; print this and end well
};

// "train", "infer" or "config".
absl::StatusOr<Verb> ParseVerb(const std::string& name);

// What to type in a shell to continue the run that `args` started.
std::string ResumeCommand(const TrainArgs& args);

// argv[0] is skipped: it is the verb. An error is the user's (exit 2) and says what to type.
absl::StatusOr<TrainArgs> ParseTrainArgs(Verb verb, int argc, const char* const* argv);

}  // namespace regatta::settings
