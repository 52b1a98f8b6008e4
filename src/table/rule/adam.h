// m = β1·m + (1−β1)·g; v = β2·v + (1−β2)·g²; w −= lr·m̂/(√v̂ + ε), m̂ = m/(1−β1ᵗ), v̂ = v/(1−β2ᵗ).
// A sparse row has its own t: it keeps β1ᵗ and β2ᵗ of its next update behind m and v. A dense table counts updates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "table/rule/element.h"
#include "table/table_config.h"

namespace regatta::table {

// The update of one element once t is known.
struct AdamElement {
  float beta1, beta2;
  float rest1, rest2;  // 1 − β
  float epsilon;
  float rate;     // lr / (1 − β1ᵗ)
  float v_scale;  // 1 / (1 − β2ᵗ)

  static constexpr int kStates = 2;
  void operator()(float, float g, float& w, float& m, float& v) const {
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * (g * g);
    w -= rate * m / (std::sqrt(v * v_scale) + epsilon);
  }
};

struct Adam {
  double beta1, beta2;
  float epsilon;

  static RuleConfig Defaults() {
    return {.name = "adam", .learning_rate = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
  }
  static Adam From(const RuleConfig& c) { return {c.beta1, c.beta2, static_cast<float>(c.epsilon)}; }
  static int StateSize(int dim) { return 2 * dim + 2; }
  void InitState(int dim, float* state) const {
    std::fill_n(state, 2 * dim, 0.0f);
    state[2 * dim] = static_cast<float>(beta1);
    state[2 * dim + 1] = static_cast<float>(beta2);
  }

  // 1 − β is taken of the same float β as 1 − βᵗ, so that the first update is exact: m̂ = g.
  AdamElement At(float lr, float power1, float power2) const {
    const float b1 = static_cast<float>(beta1);
    const float b2 = static_cast<float>(beta2);
    return {b1, b2, 1 - b1, 1 - b2, epsilon, lr / (1 - power1), 1 / (1 - power2)};
  }

  [[gnu::always_inline]] void UpdateRow(const UpdateScale& scale, int dim, const float* g, float* w,
                                        float* state) const {
    float* powers = state + 2 * dim;
    float* states[] = {state, state + dim};
    const AdamElement element = At(scale.learning_rate, powers[0], powers[1]);
    UpdateElements(element, scale, dim, g, w, states);
    powers[0] *= element.beta1;
    powers[1] *= element.beta2;
  }
};

struct DenseAdam : Adam {
  static constexpr int kStates = 2;
  static DenseAdam From(const RuleConfig& c) { return {Adam::From(c)}; }
  AdamElement Prepare(float lr, uint64_t updates) const {
    const double t = static_cast<double>(updates) + 1;
    return {static_cast<float>(beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta1),
            static_cast<float>(1 - beta2),
            epsilon,
            static_cast<float>(lr / (1 - std::pow(beta1, t))),
            static_cast<float>(1 / (1 - std::pow(beta2, t)))};
  }
};

}  // namespace regatta::table
