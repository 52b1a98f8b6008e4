// train, infer and config need libtorch: `regatta` becomes `regatta-train`, which stands beside it, with the words it
// got. `regatta train` in the PSERVER role needs none and becomes
//   regatta-pserver --role-from-environment [--insecure] [--token_file=…] [--metrics_port=N] -- train -m config.yaml …
// (cluster/pserver_args.h parses it). A wrong environment, flag or configuration, and a role that this build cannot
// play, are errors before anything starts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cluster/environment.h"

namespace regatta::cli {

// Whether `verb` belongs to the worker's executable.
bool IsWorkerVerb(std::string_view verb);

struct Sibling {
  std::string program;
  std::vector<std::string> words;
};

// What `regatta <words>` becomes; words[0] is a worker verb.
absl::StatusOr<Sibling> ChooseSibling(const std::vector<std::string>& words, const cluster::Getenv& getenv);

// Becomes it; returns only where that fails. Every error is the user's.
absl::Status ExecWorkerVerb(const std::vector<std::string>& words);

// `regatta pserver …`: regatta-pserver with the words behind the verb.
absl::Status ExecPserver(const std::vector<std::string>& words);
// `regatta status …`: regatta-pserver has gRPC; with it `regatta` would take twice as long to start, 8 ms against 4.
absl::Status ExecStatus(std::vector<std::string> words);
// `regatta credentials …`: regatta-pserver has OpenSSL.
absl::Status ExecCredentials(std::vector<std::string> words);

}  // namespace regatta::cli
