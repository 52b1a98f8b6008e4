// The part of a program that some variables need: what save_inference_model saves.
// Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program/program.h"

namespace regatta::program {

// A copy for tests with the operations that `targets` need, if `feeds` are given. Blocks keep their indices; one that
// no operation uses any more is empty. NOT_FOUND names a target or feed that the program does not have.
absl::StatusOr<std::unique_ptr<Program>> Prune(const Program& program, const std::vector<std::string>& feeds,
                                               const std::vector<std::string>& targets);

// Prune, with a `feed` operation for each feed and a `fetch` operation for each target. INVALID_ARGUMENT names data
// that the targets need and that is not fed.
absl::StatusOr<std::unique_ptr<Program>> InferenceProgram(const Program& program, const std::vector<std::string>& feeds,
                                                          const std::vector<std::string>& targets);

// The variables that an inference program is fed with, and those that it gives, in their order.
std::vector<std::string> FeedsOf(const Program& program);
std::vector<std::string> FetchesOf(const Program& program);

}  // namespace regatta::program
