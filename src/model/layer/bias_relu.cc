#include "model/layer/bias_relu.h"

#include <algorithm>
#include <vector>

#include "base/multiversion.h"

namespace regatta::model {
namespace {

// Sums are formed in blocks of rows, so that the error does not grow with the batch.
constexpr int64_t kBlock = 32;

REGATTA_MULTIVERSION void AddBiasPlain(float* y, const float* bias, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, y += columns)
    for (int64_t c = 0; c < columns; ++c) y[c] += bias[c];
}

REGATTA_MULTIVERSION void AddBiasRelu(float* y, const float* bias, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, y += columns) {
    for (int64_t c = 0; c < columns; ++c) {
      const float v = y[c] + bias[c];
      y[c] = v > 0 ? v : 0.0f;
    }
  }
}

REGATTA_MULTIVERSION void AddRow(float* __restrict sum, const float* __restrict row, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) sum[c] += row[c];
}

REGATTA_MULTIVERSION void MaskAndAdd(float* __restrict grad, const float* __restrict y, float* __restrict sum,
                                     int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    const float g = y[c] > 0 ? grad[c] : 0.0f;
    grad[c] = g;
    sum[c] += g;
  }
}

}  // namespace

void AddBias(float* y, const float* bias, int64_t rows, int64_t columns, Activation activation) {
  (activation == Activation::kRelu ? AddBiasRelu : AddBiasPlain)(y, bias, rows, columns);
}

void SumRows(const float* grad, int64_t rows, int64_t columns, float* bias_grad) {
  std::fill_n(bias_grad, columns, 0.0f);
  std::vector<float> block(columns);
  for (int64_t r = 0; r < rows; r += kBlock) {
    std::fill(block.begin(), block.end(), 0.0f);
    for (int64_t i = r; i < std::min(r + kBlock, rows); ++i) AddRow(block.data(), grad + i * columns, columns);
    AddRow(bias_grad, block.data(), columns);
  }
}

void ReluBackward(float* grad, const float* y, int64_t rows, int64_t columns, float* bias_grad) {
  std::fill_n(bias_grad, columns, 0.0f);
  std::vector<float> block(columns);
  for (int64_t r = 0; r < rows; r += kBlock) {
    std::fill(block.begin(), block.end(), 0.0f);
    for (int64_t i = r; i < std::min(r + kBlock, rows); ++i)
      MaskAndAdd(grad + i * columns, y + i * columns, block.data(), columns);
    AddRow(bias_grad, block.data(), columns);
  }
}

}  // namespace regatta::model
