#include "table/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace regatta::table {
namespace {

// How many decay periods have passed.
double Periods(const ScheduleConfig& c, double step) {
  const double periods = step / c.decay_steps;
  return c.staircase ? std::floor(periods) : periods;
}

double Constant(const ScheduleConfig&, double base, double) { return base; }

double Exponential(const ScheduleConfig& c, double base, double step) {
  return base * std::pow(c.decay_rate, Periods(c, step));
}

double NaturalExp(const ScheduleConfig& c, double base, double step) {
  return base * std::exp(-c.decay_rate * Periods(c, step));
}

double InverseTime(const ScheduleConfig& c, double base, double step) {
  return base / (1 + c.decay_rate * Periods(c, step));
}

double Polynomial(const ScheduleConfig& c, double base, double step) {
  const double left = 1 - std::min(step, c.decay_steps) / c.decay_steps;
  return (base - c.end_learning_rate) * std::pow(left, c.power) + c.end_learning_rate;
}

double Piecewise(const ScheduleConfig& c, double, double step) {
  return c.values[std::upper_bound(c.boundaries.begin(), c.boundaries.end(), step) - c.boundaries.begin()];
}

double Noam(const ScheduleConfig& c, double base, double step) {
  const double t = step + 1;
  return base / std::sqrt(c.d_model) * std::min(1 / std::sqrt(t), t * std::pow(c.warmup_steps, -1.5));
}

double Cosine(const ScheduleConfig& c, double base, double step) {
  const double done = std::min(step, c.decay_steps) / c.decay_steps;
  return c.end_learning_rate + (base - c.end_learning_rate) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

// What a schedule needs of its settings; "" when it has it.
std::string NeedsNothing(const ScheduleConfig&) { return ""; }
std::string NeedsPeriod(const ScheduleConfig& c) { return c.decay_steps > 0 ? "" : "decay_steps must be above 0"; }
std::string NeedsRate(const ScheduleConfig& c) {
  if (!(c.decay_rate >= 0)) return "decay_rate must not be negative";
  return NeedsPeriod(c);
}
std::string NeedsPower(const ScheduleConfig& c) {
  if (!(c.power > 0)) return "power must be above 0";
  return NeedsPeriod(c);
}
std::string NeedsPieces(const ScheduleConfig& c) {
  if (c.values.size() != c.boundaries.size() + 1) {
    return absl::StrCat("values must be one more than boundaries: ", c.values.size(), " and ", c.boundaries.size());
  }
  return std::is_sorted(c.boundaries.begin(), c.boundaries.end()) ? "" : "boundaries must ascend";
}
std::string NeedsModel(const ScheduleConfig& c) {
  if (!(c.d_model > 0)) return "d_model must be above 0";
  return c.warmup_steps > 0 ? "" : "warmup_steps must be above 0";
}

}  // namespace

struct Schedule::Entry {
  std::string_view name;
  Rate rate;
  std::string (*needs)(const ScheduleConfig&);
  bool warms_up = true;
};

const Schedule::Entry Schedule::kSchedules[] = {
    {"constant", &Constant, &NeedsNothing},   {"exponential", &Exponential, &NeedsRate},
    {"natural_exp", &NaturalExp, &NeedsRate}, {"inverse_time", &InverseTime, &NeedsRate},
    {"polynomial", &Polynomial, &NeedsPower}, {"piecewise", &Piecewise, &NeedsPieces},
    {"noam", &Noam, &NeedsModel, false},      {"cosine", &Cosine, &NeedsPeriod},
};

absl::StatusOr<Schedule> Schedule::Create(const ScheduleConfig& config) {
  std::string names;
  for (const Entry& entry : kSchedules) {
    if (entry.name == config.name) {
      std::string wrong = entry.needs(config);
      if (wrong.empty() && !(config.warmup_steps >= 0)) wrong = "warmup_steps must not be negative";
      if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrCat("schedule ", config.name, ": ", wrong));
      return Schedule(config, entry.rate, entry.warms_up && config.warmup_steps > 0);
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", base::View(entry.name));
  }
  return absl::InvalidArgumentError(absl::StrCat("schedule: there is no '", config.name, "'; use one of ", names));
}

double Schedule::LearningRate(double base, uint64_t step) const {
  const double t = static_cast<double>(step);
  const double rate = rate_(config_, base, t);
  return warms_up_ ? rate * std::min(1.0, (t + 1) / config_.warmup_steps) : rate;
}

}  // namespace regatta::table
