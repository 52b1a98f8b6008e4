// Variables of a scope as files, one a variable: what save_persistables writes (docs/format/variable.md).
// Thread-safety: the scope is read, or changed, by one thread.
// Invariant: a file is there whole or not at all; a file whose bytes have changed is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "exec/scope.h"
#include "program/program.h"

namespace regatta::exec {

// "fc_0.w_0" as it is; '/', '%' and a leading '.' as %2F, %25 and %2E.
std::string VariableFileName(std::string_view variable);

std::string SerializeVariable(const LodTensor& value);
// DATA_LOSS if the bytes are damaged, INVALID_ARGUMENT if they are no variable.
absl::StatusOr<LodTensor> ParseVariable(std::string_view bytes);

// Makes the folder, and writes its files anew. FAILED_PRECONDITION names a variable that has no value.
absl::Status SaveVariables(const Scope& scope, const std::vector<std::string>& names, const std::string& folder);

// Sets all of the variables, or none. NOT_FOUND names a file that is missing; INVALID_ARGUMENT a variable whose type or
// shape is not as `program` declares it.
absl::Status LoadVariables(const program::Program& program, const std::vector<std::string>& names,
                           const std::string& folder, Scope& scope);

}  // namespace regatta::exec
