// The gradients of this process that held NaN or Inf: counts them and says what becomes of them.
// Thread-safety: one call at a time.
#pragma once

#include <cstdint>
#include <string>

#include "table/push_options.h"
#include "train/step_runner.h"

namespace regatta::worker {

class BadGradients {
 public:
  explicit BadGradients(table::NanPolicy policy) : policy_(policy) {}

  // Logs the first of a run at once: it may be long until its epoch ends.
  void Add(uint64_t epoch, const train::StepResult& result);
  // Logs how many there were so far, if any.
  void LogTotal() const;

 private:
  std::string WhatBecomesOfThem() const;

  const table::NanPolicy policy_;
  uint64_t rows_ = 0, dense_ = 0;
};

}  // namespace regatta::worker
