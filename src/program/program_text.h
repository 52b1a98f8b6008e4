// A program as people read it, what print(program) shows:
//   program, random_seed 0
//   block 0
//     data x: float32 [-1, 13]
//     parameter fc_0.w_0: float32 [13, 1]
//     fc_0.tmp_0: float32 [-1, 1]
//     Out=fc_0.tmp_0 <- mul(X=x, Y=fc_0.w_0)
// Thread-safety: pure functions. Names are made printable, so that none forges a line.
#pragma once

#include <string>

#include "program/program.h"

namespace regatta::program {

// "parameter fc_0.w_0: float32 [13, 1]", and what a variable has besides: lod_level 1, stop_gradient, …
std::string VariableText(const Variable& variable);

// "Out=fc_0.tmp_0 <- mul(X=x, Y=fc_0.w_0)", attributes that differ from their defaults, and the role if it is not
// forward.
std::string OperationText(const Operation& operation);

std::string ProgramText(const Program& program);

}  // namespace regatta::program
