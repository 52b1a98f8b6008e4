// Reads the runner section of a configuration.
// Thread-safety: pure functions; the Config belongs to one thread.
#pragma once

#include <string>

#include "base/config.h"
#include "base/status.h"
#include "settings/runner_options.h"

namespace regatta::settings {

// Reads runner.* of `config`. The one place that knows the keys is KeyTable().
absl::StatusOr<RunnerOptions> ParseRunnerOptions(base::Config& config, Deployment deployment, Remarks& remarks);

// `path` made absolute against `folder`; "" stays "".
std::string ResolvePath(const std::string& folder, const std::string& path);

}  // namespace regatta::settings
