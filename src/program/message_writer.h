// The messages of program.proto, made from a program's parts.
// Thread-safety: pure functions.
#pragma once

#include "program/program.h"
#include "program/program.pb.h"

namespace regatta::program {

ProgramMessage MessageOf(const Program& program);

}  // namespace regatta::program
