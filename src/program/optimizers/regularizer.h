// Operations that add a penalty on weights to their gradients.
// Thread-safety: as ProgramBuilder.
#pragma once

#include <optional>
#include <vector>

#include "program/backward.h"

namespace regatta::program {

// The gradients with the penalty added. A parameter's own regularizer goes before `regularizer`, the optimizer's.
absl::StatusOr<std::vector<ParameterGradient>> AppendRegularizers(ProgramBuilder& builder,
                                                                  std::vector<ParameterGradient> gradients,
                                                                  const std::optional<Regularizer>& regularizer);

}  // namespace regatta::program
