// Operations that clip gradients: each element, each gradient's norm, or the norm of a group of gradients.
// Thread-safety: as ProgramBuilder.
#pragma once

#include <optional>
#include <vector>

#include "program/backward.h"

namespace regatta::program {

// The gradients with those that are clipped replaced. `clip` is the optimizer's and goes for all; without it every
// parameter has its own. INVALID_ARGUMENT if two parameters of a group have different limits.
absl::StatusOr<std::vector<ParameterGradient>> AppendGradientClip(ProgramBuilder& builder,
                                                                  std::vector<ParameterGradient> gradients,
                                                                  const std::optional<GradientClip>& clip);

}  // namespace regatta::program
