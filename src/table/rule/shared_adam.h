// adam with one m and one v a row: element i takes m_i = β1·m + (1−β1)·g_i and v_i = β2·v + (1−β2)·g_i² into the step
// of adam, and the row keeps their means, which are β1·m + (1−β1)·mean(g) and β2·v + (1−β2)·mean(g²).
// State: m, v, β1ᵗ, β2ᵗ.
#pragma once

#include "table/rule/adam.h"
#include "table/rule/element.h"
#include "table/table_config.h"

namespace regatta::table {

struct SharedAdam : Adam {
  static RuleConfig Defaults() {
    RuleConfig defaults = Adam::Defaults();
    defaults.name = "shared_adam";
    return defaults;
  }
  static SharedAdam From(const RuleConfig& c) { return {Adam::From(c)}; }
  static int StateSize(int) { return 4; }
  void InitState(int, float* state) const { Adam::InitState(1, state); }

  // The step of an element from the row's m and v, which stay as they are.
  struct Element {
    AdamElement adam;
    float m, v;
    static constexpr int kStates = 0;
    void operator()(float lr, float g, float& w) const {
      float m_i = m;
      float v_i = v;
      adam(lr, g, w, m_i, v_i);
    }
  };

  [[gnu::always_inline]] void UpdateRow(const UpdateScale& scale, int dim, const float* g, float* w,
                                        float* state) const {
    const AdamElement adam = At(scale.learning_rate, state[2], state[3]);
    UpdateElements(Element{adam, state[0], state[1]}, scale, dim, g, w, nullptr);
    const GradientMeans means = MeansOf(g, scale.samples, dim);
    state[0] = adam.beta1 * state[0] + adam.rest1 * means.gradient;
    state[1] = adam.beta2 * state[1] + adam.rest2 * means.square;
    state[2] *= adam.beta1;
    state[3] *= adam.beta2;
  }
};

}  // namespace regatta::table
