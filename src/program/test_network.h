// A fixture with an empty main and startup program and a builder for them, and the network of fit_a_line.
#pragma once

#include <gtest/gtest.h>

#include "program/layers/dense.h"
#include "program/program_builder.h"
#include "program/program_text.h"

namespace regatta::program {

// The value, or a failed test.
template <typename T>
T Must(absl::StatusOr<T> value) {
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *std::move(value) : T{};
}

// The operations of a block as OperationText, a line each.
inline std::string OperationsText(const Program& program, size_t first = 0) {
  std::string text;
  const auto& operations = program.global_block().operations();
  for (size_t i = first; i < operations.size(); ++i) absl::StrAppend(&text, OperationText(*operations[i]), "\n");
  return text;
}

class NetworkTest : public testing::Test {
 protected:
  Variable* Data(const std::string& name, Shape shape, DataType dtype = DataType::kFloat32, int lod_level = 0) {
    return Must(layers::Data(builder_, name, {.shape = std::move(shape), .dtype = dtype, .lod_level = lod_level}));
  }
  std::string TypeOf(const std::string& name) { return TypeText(*main_.global_block().Find(name)); }

  // x [13] → fc → square error to y → mean.
  Variable* FitALine() {
    Variable* x = Data("x", {13});
    Variable* y = Data("y", {1});
    Variable* prediction = Must(layers::Fc(builder_, {x}, {.size = 1}));
    return Must(layers::Mean(builder_, Must(layers::SquareErrorCost(builder_, prediction, y))));
  }

  Program main_;
  Program startup_;
  NameGenerator names_;
  ProgramBuilder builder_{main_, startup_, names_};
};

}  // namespace regatta::program
