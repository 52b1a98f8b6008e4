// Copies of programs, whole and for tests.
// Thread-safety: pure functions.
#pragma once

#include <memory>

#include "program/program.h"

namespace regatta::program {

std::unique_ptr<Program> Clone(const Program& program);

// Program.clone(for_test=True): the forward operations alone, with is_test set on those that have it. Data, parameters
// and what the operations name stay; the other variables go.
std::unique_ptr<Program> CloneForTest(const Program& program);

// Removes the variables that no operation names, but data and parameters.
void RemoveUnusedVariables(Program& program);

}  // namespace regatta::program
