// Every rule against its formula written out anew in double precision.
#include "table/rule/rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"

namespace regatta::table {
namespace {

constexpr int kDim = 11;  // a vector of eight and a tail
constexpr int kSteps = 12;
constexpr float kSamples = 3;
using Row = std::vector<double>;

// One step of a row by the book: t is the step from 1 on, g the mean gradient.
using Reference = std::function<void(int t, const Row& g, Row& w, Row& state)>;

struct Case {
  std::string label;
  RuleConfig config;
  int sparse_state;  // floats; -1: not a sparse rule
  int dense_states;  // vectors; -1: not a dense rule
  Reference step;
  // State that the reference keeps: vectors of kDim, then scalars. It may be more than the rule's own.
  int reference_state;
};

double MeanSquare(const Row& g) {
  double sum = 0;
  for (const double x : g) sum += x * x;
  return sum / kDim;
}

double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

Case SgdCase() {
  return {"sgd",
          {.name = "sgd"},
          0,
          0,
          [](int, const Row& g, Row& w, Row&) {
            for (int i = 0; i < kDim; ++i) w[i] -= 0.05 * g[i];
          },
          0};
}

Case NaiveCase() {
  return {"naive",
          {.name = "naive", .learning_rate = 5},
          0,
          -1,
          [](int, const Row& g, Row& w, Row&) {
            for (int i = 0; i < kDim; ++i) w[i] = std::fmin(10, std::fmax(-10, w[i] - 5 * g[i]));
          },
          0};
}

Case BoundedAdagradV2Case() {
  return {"adagrad_v2 within a bound",
          {.name = "adagrad_v2", .bound = 0.1},
          kDim,
          1,
          [](int, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) {
              s[i] += g[i] * g[i];
              w[i] = std::fmin(0.1, std::fmax(-0.1, w[i] - 0.05 * g[i] / (std::sqrt(s[i]) + 1e-6)));
            }
          },
          kDim};
}

Case AdagradCase() {
  return {"adagrad",
          {.name = "adagrad"},
          1,
          -1,
          [](int, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) w[i] -= 0.05 * g[i] * std::sqrt(3 / (3 + s[0]));
            s[0] += MeanSquare(g);
          },
          1};
}

Case StdAdagradCase() {
  return {"std_adagrad",
          {.name = "std_adagrad", .initial_g2sum = 2},
          kDim,
          -1,
          [](int, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) {
              w[i] -= 0.05 * g[i] * std::sqrt(2 / (2 + s[i]));
              s[i] += g[i] * g[i];
            }
          },
          kDim};
}

Case AdagradV2Case() {
  return {"adagrad_v2",
          {.name = "adagrad_v2"},
          kDim,
          1,
          [](int, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) {
              s[i] += g[i] * g[i];
              w[i] -= 0.05 * g[i] / (std::sqrt(s[i]) + 1e-6);
            }
          },
          kDim};
}

Case AdamCase() {
  return {"adam",
          {.name = "adam"},
          2 * kDim + 2,
          2,
          [](int t, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) {
              s[i] = 0.9 * s[i] + 0.1 * g[i];
              s[kDim + i] = 0.999 * s[kDim + i] + 0.001 * g[i] * g[i];
              const double m = s[i] / (1 - std::pow(0.9, t));
              const double v = s[kDim + i] / (1 - std::pow(0.999, t));
              w[i] -= 0.001 * m / (std::sqrt(v) + 1e-8);
            }
          },
          2 * kDim};
}

Case SharedAdamCase() {
  return {"shared_adam",
          {.name = "shared_adam", .learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.99},
          4,
          -1,
          [](int t, const Row& g, Row& w, Row& s) {
            double mean_m = 0, mean_v = 0;
            for (int i = 0; i < kDim; ++i) {
              const double m = 0.8 * s[0] + 0.2 * g[i];
              const double v = 0.99 * s[1] + 0.01 * g[i] * g[i];
              mean_m += m / kDim;
              mean_v += v / kDim;
              w[i] -= 0.01 * (m / (1 - std::pow(0.8, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
            }
            s[0] = mean_m;
            s[1] = mean_v;
          },
          2};
}

Case MomentumCase(bool nesterov) {
  return {nesterov ? "nesterov" : "momentum",
          {.name = "momentum", .learning_rate = 0.1, .nesterov = nesterov},
          kDim,
          1,
          [nesterov](int, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) {
              s[i] = 0.9 * s[i] + g[i];
              w[i] -= 0.1 * (nesterov ? g[i] + 0.9 * s[i] : s[i]);
            }
          },
          kDim};
}

Case RmspropCase(bool centered, double momentum) {
  const int states = 1 + centered + (momentum > 0);
  return {"rmsprop",
          {.name = "rmsprop", .learning_rate = 0.01, .momentum = momentum, .rho = 0.9, .centered = centered},
          states * kDim,
          states,
          [centered, momentum](int, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) {
              double& r = s[i];
              double& a = s[kDim + i];
              double& u = s[2 * kDim + i];
              r = 0.9 * r + 0.1 * g[i] * g[i];
              a = 0.9 * a + 0.1 * g[i];
              u = momentum * u + 0.01 * g[i] / std::sqrt(r - (centered ? a * a : 0) + 1e-6);
              w[i] -= u;
            }
          },
          3 * kDim};
}

Case FtrlCase() {
  return {"ftrl",
          {.name = "ftrl", .alpha = 0.2, .beta = 0.5, .lambda1 = 0.3, .lambda2 = 0.1},
          2 * kDim,
          2,
          [](int, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) {
              double& z = s[i];
              double& n = s[kDim + i];
              const double sigma = (std::sqrt(n + g[i] * g[i]) - std::sqrt(n)) / 0.2;
              z += g[i] - sigma * w[i];
              n += g[i] * g[i];
              w[i] = std::fabs(z) <= 0.3 ? 0 : -(z - Sign(z) * 0.3) / ((0.5 + std::sqrt(n)) / 0.2 + 0.1);
            }
          },
          2 * kDim};
}

Case AdamaxCase() {
  return {"adamax",
          {.name = "adamax"},
          -1,
          2,
          [](int t, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) {
              s[i] = 0.9 * s[i] + 0.1 * g[i];
              s[kDim + i] = std::fmax(std::fabs(g[i]), 0.999 * s[kDim + i] + 1e-8);
              w[i] -= 0.001 / (1 - std::pow(0.9, t)) * s[i] / s[kDim + i];
            }
          },
          2 * kDim};
}

Case DecayedAdagradCase() {
  return {"decayed_adagrad",
          {.name = "decayed_adagrad"},
          -1,
          1,
          [](int, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) {
              s[i] = 0.95 * s[i] + 0.05 * g[i] * g[i];
              w[i] -= 0.001 * g[i] / (std::sqrt(s[i]) + 1e-6);
            }
          },
          kDim};
}

Case AdamD2sumCase() {
  return {"adam_d2sum",
          {.name = "adam_d2sum", .learning_rate = 0.01},
          -1,
          3,
          [](int, const Row& g, Row& w, Row& s) {
            for (int i = 0; i < kDim; ++i) {
              double& v = s[i];
              double& g2 = s[kDim + i];
              double& d2 = s[2 * kDim + i];
              d2 = 0.9999 * d2 + 1;
              g2 = 0.9999 * g2 + g[i] * g[i];
              v = 0.99 * v + 0.01 * g[i];
              w[i] -= 0.01 * v * std::sqrt((d2 + d2 * 1e-8) / (g2 + d2 * 1e-8));
            }
          },
          3 * kDim};
}

// The dense rule named adagrad is the usual one, not the sparse one of that name.
Case DenseAdagradCase() {
  Case c = AdagradV2Case();
  c.label = "dense adagrad";
  c.config.name = "adagrad";
  c.sparse_state = -1;
  return c;
}

std::vector<Case> Cases() {
  return {SgdCase(),
          NaiveCase(),
          AdagradCase(),
          StdAdagradCase(),
          AdagradV2Case(),
          AdamCase(),
          SharedAdamCase(),
          MomentumCase(false),
          MomentumCase(true),
          RmspropCase(false, 0),
          RmspropCase(true, 0),
          RmspropCase(false, 0.9),
          RmspropCase(true, 0.5),
          FtrlCase(),
          AdamaxCase(),
          DecayedAdagradCase(),
          AdamD2sumCase(),
          DenseAdagradCase(),
          BoundedAdagradV2Case()};
}

std::vector<float> Gradients(int step) {
  std::vector<float> sums(kDim);
  for (int i = 0; i < kDim; ++i) {
    sums[i] = 6 * (base::UniformFloat(base::RandomBits(step, i)) - 0.4f);
  }
  sums[2] = 0;
  return sums;
}

Row InitialWeights() {
  Row w(kDim);
  for (int i = 0; i < kDim; ++i) w[i] = 0.03f * static_cast<float>(i - 5);
  return w;
}

Row ReferenceAfter(const Case& c, int steps) {
  Row w = InitialWeights();
  Row state(c.reference_state, 0.0);
  for (int t = 1; t <= steps; ++t) {
    Row g;
    for (const float sum : Gradients(t)) g.push_back(static_cast<double>(sum) / kSamples);
    c.step(t, g, w, state);
  }
  return w;
}

void ExpectNear(std::span<const float> weights, const Row& expected, const std::string& label, int t) {
  for (int i = 0; i < kDim; ++i) {
    EXPECT_NEAR(weights[i], expected[i], 2e-5 * std::fmax(0.1, std::fabs(expected[i]))) << label << " step " << t;
  }
}

TEST(Rule, SparseRulesFollowTheirFormulas) {
  for (const Case& c : Cases()) {
    if (c.sparse_state < 0) continue;
    const auto rule = MakeSparseRule(c.config);
    ASSERT_TRUE(rule.ok()) << rule.status();
    ASSERT_EQ((*rule)->StateSize(kDim), c.sparse_state) << c.label;
    std::vector<float> row(kDim + c.sparse_state + 1, -7);
    const Row start = InitialWeights();
    std::copy(start.begin(), start.end(), row.begin());
    (*rule)->InitState(kDim, row.data() + kDim);
    for (int t = 1; t <= kSteps; ++t) {
      const std::vector<float> sums = Gradients(t);
      float* rows[] = {nullptr, row.data()};  // a null row is left out
      std::vector<float> grads(2 * kDim, 1e9f);
      std::copy(sums.begin(), sums.end(), grads.begin() + kDim);
      (*rule)->Apply(
          {rows, {grads.data(), kDim, kDim}, 2, kDim, kSamples, static_cast<float>((*rule)->learning_rate())});
      ExpectNear(row, ReferenceAfter(c, t), c.label, t);
    }
    EXPECT_EQ(row.back(), -7) << c.label << " wrote behind its row";
  }
}

TEST(Rule, DenseRulesFollowTheirFormulas) {
  for (const Case& c : Cases()) {
    if (c.dense_states < 0) continue;
    const auto rule = MakeDenseRule(c.config);
    ASSERT_TRUE(rule.ok()) << rule.status();
    ASSERT_EQ((*rule)->state_count(), c.dense_states) << c.label;
    const Row start = InitialWeights();
    std::vector<float> weights(start.begin(), start.end());
    std::vector<std::vector<float>> states(c.dense_states, std::vector<float>(kDim, 0.0f));
    std::vector<float*> pointers;
    for (auto& state : states) pointers.push_back(state.data());
    for (int t = 1; t <= kSteps; ++t) {
      const std::vector<float> sums = Gradients(t);
      (*rule)->Apply({weights.data(), pointers.data(), sums.data(), kDim, kSamples,
                      static_cast<float>((*rule)->learning_rate()), static_cast<uint64_t>(t - 1)});
      ExpectNear(weights, ReferenceAfter(c, t), c.label, t);
    }
  }
}

TEST(Rule, AdamsPowersOfAFreshRowAreItsBetas) {
  const auto rule = MakeSparseRule({.name = "adam", .beta1 = 0.75, .beta2 = 0.5});
  ASSERT_TRUE(rule.ok());
  std::vector<float> state(2 * 3 + 2, -1);
  (*rule)->InitState(3, state.data());
  EXPECT_EQ(state, (std::vector<float>{0, 0, 0, 0, 0, 0, 0.75f, 0.5f}));
}

TEST(Rule, CenteredRmspropSurvivesRounding) {
  const auto rule = MakeSparseRule({.name = "rmsprop", .centered = true});
  ASSERT_TRUE(rule.ok());
  std::vector<float> row(3, 0.0f);
  float* rows[] = {row.data()};
  const float gradient = 12345.678f;  // constant: r − a² tends to 0 and rounds below it
  for (int t = 0; t < 2000; ++t) (*rule)->Apply({rows, {&gradient, 1, 1}, 1, 1, 1, 0.001f});
  EXPECT_TRUE(std::isfinite(row[0]));
}

TEST(Rule, FtrlWithNothingToDivideByGivesZero) {
  const auto rule = MakeSparseRule({.name = "ftrl", .beta = 0});
  ASSERT_TRUE(rule.ok());
  std::vector<float> row = {0.5f, 0, 0};
  float* rows[] = {row.data()};
  const float gradient = 0;
  (*rule)->Apply({rows, {&gradient, 1, 1}, 1, 1, 1, 0.05f});
  EXPECT_EQ(row, (std::vector<float>{0, 0, 0}));
  EXPECT_FALSE(std::signbit(row[0]));
}

TEST(Rule, AnUnknownRuleIsAnsweredWithTheRulesOfThatKind) {
  const auto sparse = MakeSparseRule({.name = "adamw"});
  ASSERT_FALSE(sparse.ok());
  EXPECT_NE(sparse.status().message().find("std_adagrad"), std::string::npos) << sparse.status();
  EXPECT_EQ(sparse.status().message().find("adamax"), std::string::npos) << sparse.status();
  const auto dense = MakeDenseRule({.name = "summary"});
  ASSERT_FALSE(dense.ok());
  EXPECT_NE(dense.status().message().find("adam_d2sum"), std::string::npos) << dense.status();
  EXPECT_EQ(dense.status().message().find("std_adagrad"), std::string::npos) << dense.status();
}

TEST(Rule, SettingsOutOfRangeAreRefusedByName) {
  const auto refused = [](const RuleConfig& config, const std::string& word) {
    const auto rule = MakeSparseRule(config);
    ASSERT_FALSE(rule.ok()) << word;
    EXPECT_NE(rule.status().message().find(word), std::string::npos) << rule.status();
  };
  refused({.name = "adam", .beta2 = 1}, "beta2");
  refused({.name = "adam", .learning_rate = std::nan("")}, "learning_rate");
  refused({.name = "sgd", .learning_rate = INFINITY}, "learning_rate");
  refused({.name = "adagrad", .initial_g2sum = 0}, "initial_g2sum");
  refused({.name = "ftrl", .alpha = 0}, "alpha");
  refused({.name = "momentum", .momentum = 1.5}, "momentum");
}

}  // namespace
}  // namespace regatta::table
