// train, infer and config need libtorch: `regatta` becomes `regatta-train`, which stands beside it.
#pragma once

#include <string_view>

#include "base/status.h"

namespace regatta::cli {

// Whether `verb` belongs to the worker's executable.
bool IsWorkerVerb(std::string_view verb);

// Replaces this process by regatta-train with the same arguments; returns only where that fails.
absl::Status ExecWorker(char** argv);

}  // namespace regatta::cli
