// The loops that rules share. A rule's math is a functor of one element,
//   static constexpr int kStates = 1;                                    // state floats an element
//   void operator()(float lr, float g, float& w, float& s) const;        // a reference a state
// which the loops below inline; rule.cc compiles them for plain x86-64 and for AVX2.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "table/table_config.h"

#if defined(__clang__)
#define REGATTA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define REGATTA_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace regatta::table {

// What every element of a push shares.
struct UpdateScale {
  float learning_rate;
  float samples;
  float bound;  // |w| stays within it
};

namespace internal {

template <typename Math, size_t... I>
[[gnu::always_inline]] inline void UpdateElements(Math math, UpdateScale scale, int64_t n, const float* g, float* w,
                                                  float* const* states, std::index_sequence<I...>) {
  float* const s[] = {states[I]..., nullptr};
  REGATTA_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    float weight = w[i];
    [[maybe_unused]] float state[] = {s[I][i]..., 0.0f};
    math(scale.learning_rate, g[i] / scale.samples, weight, state[I]...);
    w[i] = std::min(std::max(weight, -scale.bound), scale.bound);
    ((s[I][i] = state[I]), ...);
  }
}

}  // namespace internal

// Element i of every array: the gradient's mean, the weight, the states.
template <typename Math>
[[gnu::always_inline]] inline void UpdateElements(const Math& math, const UpdateScale& scale, int64_t n, const float* g,
                                                  float* w, float* const* states) {
  internal::UpdateElements(math, scale, n, g, w, states, std::make_index_sequence<Math::kStates>());
}

// Of a row: the mean of its gradient's elements and of their squares.
struct GradientMeans {
  float gradient;
  float square;
};

// Eight partial sums: a fixed order of additions that vectorises.
[[gnu::always_inline]] inline GradientMeans MeansOf(const float* g, float samples, int dim) {
  float sums[8] = {};
  float squares[8] = {};
  int i = 0;
  for (; i + 8 <= dim; i += 8) {
    for (int j = 0; j < 8; ++j) {
      const float mean = g[i + j] / samples;
      sums[j] += mean;
      squares[j] += mean * mean;
    }
  }
  for (int j = 0; i < dim; ++i, ++j) {
    const float mean = g[i] / samples;
    sums[j] += mean;
    squares[j] += mean * mean;
  }
  const auto total = [](const float* s) { return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])); };
  return {total(sums) / static_cast<float>(dim), total(squares) / static_cast<float>(dim)};
}

// A sparse rule of independent elements: the row's states are kStates vectors behind its weights, all from 0.
template <typename Math>
struct PerElement {
  Math math;

  static RuleConfig Defaults() { return Math::Defaults(); }
  static PerElement From(const RuleConfig& config) { return {Math::From(config)}; }
  static double LearningRate(const RuleConfig& config) requires requires { Math::LearningRate(config); }
  { return Math::LearningRate(config); }
  static int StateSize(int dim) { return Math::kStates * dim; }
  static void InitState(int dim, float* state) { std::fill_n(state, StateSize(dim), 0.0f); }

  [[gnu::always_inline]] void UpdateRow(const UpdateScale& scale, int dim, const float* g, float* w,
                                        float* state) const {
    float* states[Math::kStates + 1];
    for (int i = 0; i < Math::kStates; ++i) states[i] = state + i * dim;
    UpdateElements(math, scale, dim, g, w, states);
  }
};

}  // namespace regatta::table
