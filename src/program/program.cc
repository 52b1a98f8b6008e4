#include "program/program.h"

namespace regatta::program {

std::vector<const Variable*> ParametersOf(const Program& program) {
  std::vector<const Variable*> parameters;
  for (size_t i = 0; i < program.block_count(); ++i)
    for (const auto& variable : program.block(i).variables())
      if (variable->parameter) parameters.push_back(variable.get());
  return parameters;
}

}  // namespace regatta::program
