// The learning rate as a function of the step number, so that no server has to count. docs/rules.md has the formulas.
// Thread-safety: constant after construction.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "table/table_config.h"

namespace regatta::table {

class Schedule {
 public:
  // INVALID_ARGUMENT names the schedule and the setting that cannot be.
  static absl::StatusOr<Schedule> Create(const ScheduleConfig& config);

  // Of step 0, 1, …; `base` is the rule's learning rate.
  double LearningRate(double base, uint64_t step) const;

 private:
  using Rate = double (*)(const ScheduleConfig&, double base, double step);
  struct Entry;
  static const Entry kSchedules[];

  Schedule(const ScheduleConfig& config, Rate rate, bool warms_up)
      : config_(config), rate_(rate), warms_up_(warms_up) {}

  ScheduleConfig config_;
  Rate rate_;
  bool warms_up_;  // linearly over warmup_steps; noam has its own
};

}  // namespace regatta::table
