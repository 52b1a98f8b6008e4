// The kernels of all operators: the rows of kernels/*.cc, put together. A file has the name of that in
// src/program/schema/ which has the operators' schemas; recurrent.cc has some of sequence.cc's.
// Thread-safety: constant after the first call, which is safe from any thread.
#pragma once

#include <span>
#include <string_view>

#include "exec/kernel.h"

namespace regatta::exec {

// What a kernel's inputs may be besides dense tensors.
enum class Accepts : uint8_t { kTensors, kRows };

struct KernelRow {
  std::string_view type;
  Kernel kernel;  // nullptr: the executor itself runs it, for it has a body
  Accepts accepts = Accepts::kTensors;
};

// nullptr if the operator has none.
const KernelRow* FindKernel(std::string_view type);

// The families; kernel_table.cc puts them together.
std::span<const KernelRow> ActivationKernels();
std::span<const KernelRow> ControlKernels();
std::span<const KernelRow> ElementwiseKernels();
std::span<const KernelRow> FillKernels();
std::span<const KernelRow> GradientKernels();
std::span<const KernelRow> LossKernels();
std::span<const KernelRow> MatrixKernels();
std::span<const KernelRow> MetricKernels();
std::span<const KernelRow> NnKernels();
std::span<const KernelRow> OptimizerKernels();
std::span<const KernelRow> RecurrentKernels();
std::span<const KernelRow> ReduceKernels();
std::span<const KernelRow> ReshapeKernels();
std::span<const KernelRow> SequenceKernels();
std::span<const KernelRow> TensorKernels();

}  // namespace regatta::exec
