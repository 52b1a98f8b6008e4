// One operator in the tables of this folder, written as text:
//   {"sequence_pool", "X", "Out MaxIndex?", "pooltype:string=AVERAGE|SUM|SQRT pad_value:float=0", InferSequencePool}
// A slot's name may have ? (may be empty) and * (holds many) behind it. An attribute is name:type=default, or name:type
// if it must be given; a string may list its choices, the default first. Lists are written [1,1]; a dtype is an
// int, its code. An int has 32 bits, as in Fluid; `long` and `longs` have 64.
// Thread-safety: constants.
#pragma once

#include <span>
#include <string_view>

#include "program/op_schema.h"

namespace regatta::program {

// The words of a row, one space between two; anything else does not compile.
struct RowText {
  std::string_view text;

  constexpr RowText(const char* literal) : text(literal) {  // NOLINT(google-explicit-constructor): rows are read so
    char before = ' ';
    for (const char c : text) {
      if (c == ' ' && before == ' ') throw "two spaces, or one at the beginning";
      before = c;
    }
    if (!text.empty() && before == ' ') throw "a space at the end";
  }
};

struct OpRow {
  std::string_view type;
  RowText inputs;
  RowText outputs;
  RowText attributes;
  InferFunction infer;
};

// The families; schema_table.cc puts them together.
std::span<const OpRow> ActivationRows();
std::span<const OpRow> ControlRows();
std::span<const OpRow> DistributedRows();
std::span<const OpRow> ElementwiseRows();
std::span<const OpRow> FillRows();
std::span<const OpRow> GradientRows();
std::span<const OpRow> IoRows();
std::span<const OpRow> LossRows();
std::span<const OpRow> MatrixRows();
std::span<const OpRow> MetricRows();
std::span<const OpRow> NnRows();
std::span<const OpRow> OptimizerRows();
std::span<const OpRow> ReduceRows();
std::span<const OpRow> ReshapeRows();
std::span<const OpRow> SequenceRows();
std::span<const OpRow> TensorRows();

}  // namespace regatta::program
