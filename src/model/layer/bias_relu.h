// The elementwise parts of a fully connected layer, each in one pass over the matrix.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

namespace regatta::model {

enum class Activation : uint8_t { kNone, kRelu };

// y = activation(y + bias), row by row. y is [rows, columns], contiguous.
void AddBias(float* y, const float* bias, int64_t rows, int64_t columns, Activation activation);

// bias_grad = Σ rows of grad.
void SumRows(const float* grad, int64_t rows, int64_t columns, float* bias_grad);

// grad = 0 where y is not positive; bias_grad = Σ rows of the result.
void ReluBackward(float* grad, const float* y, int64_t rows, int64_t columns, float* bias_grad);

}  // namespace regatta::model
