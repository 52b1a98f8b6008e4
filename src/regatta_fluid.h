// PaddlePaddle Fluid's programs for C++ programs of one's own, without Python: a network of layers, an optimizer, and
// an executor that runs both over libtorch.
//
//   fluid::Program main, startup;
//   fluid::NameGenerator names;
//   fluid::ProgramBuilder builder(main, startup, names);
//   ASSIGN_OR_RETURN(fluid::Variable * x, fluid::layers::Data(builder, "x", {.shape = {13}}));
//   ASSIGN_OR_RETURN(fluid::Variable * y, fluid::layers::Fc(builder, {x}, {.size = 1}));
//   …
//   ASSIGN_OR_RETURN(auto prepared, fluid::PreparedProgram::Make(main, {"x", "y"}, {cost->name}));
//   fluid::Executor step(prepared);
//
// examples/fit_a_line is such a program with its CMake project. Headers below say what is thread-safe; what this one
// does not name may change without notice.
#pragma once

#include "base/status.h"
#include "exec/executor.h"
#include "program/layers/dense.h"
#include "program/layers/loss.h"
#include "program/layers/metric.h"
#include "program/optimizers/optimizer.h"
#include "program/program_builder.h"

namespace regatta::fluid {

namespace layers = program::layers;

using program::DataType;
using program::Initializer;
using program::NameGenerator;
using program::Optimizer;
using program::OptimizerOptions;
using program::ParameterAttributes;
using program::Program;
using program::ProgramBuilder;
using program::Variable;

using exec::Executor;
using exec::Lod;
using exec::NamedValue;
using exec::PreparedProgram;
using exec::RunProgram;
using exec::Scope;
using exec::SelectedRows;
using exec::Value;

}  // namespace regatta::fluid
