// A program as bytes: a header with a checksum, and the messages of program.proto (docs/format/program.md).
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "program/program.h"

namespace regatta::program {

inline constexpr uint32_t kProgramVersion = 1;

// The same program gives the same bytes.
std::string SerializeProgram(const Program& program);

// The program that SerializeProgram was given. Bytes of others cost an error that names what is wrong and where:
// DATA_LOSS if the bytes are damaged, INVALID_ARGUMENT if they are no program that this version can run. Operators and
// attributes that it does not know are refused by their names.
absl::StatusOr<std::unique_ptr<Program>> ParseProgram(std::string_view bytes);

// The same without the header.
std::string SerializePayload(const Program& program);
absl::StatusOr<std::unique_ptr<Program>> ParsePayload(std::string_view payload);

}  // namespace regatta::program
