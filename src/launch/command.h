// From the words a user typed to the program that runs: verbs of regatta, Python scripts, configurations, executables.
// Thread-safety: pure functions of their arguments and the file system.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace regatta::launch {

// argv of the process, argv[0] a path. `self` is the path of the regatta executable, `search_path` the value of PATH.
//   train …                      → self and the words
//   x.yaml …                     → self train -m x.yaml …
//   x.py …                       → python3 -u x.py …
//   anything else                → the file itself, looked up in search_path where it has no slash
// An error (nothing there, not executable, infer and pserver, which have no place in a job) is the user's.
absl::StatusOr<std::vector<std::string>> ResolveCommand(const std::vector<std::string>& words, const std::string& self,
                                                        const std::string& search_path);

// Whether the words train by `regatta train`, whose workers can be started again.
bool Trains(const std::vector<std::string>& words);
// Of words that do: "train" first.
std::vector<std::string> TrainWords(const std::vector<std::string>& words);

}  // namespace regatta::launch
