#include "worker/bad_gradients.h"

#include <glog/logging.h>

#include "absl/strings/str_cat.h"

namespace regatta::worker {

void BadGradients::Add(uint64_t epoch, const train::StepResult& result) {
  if (result.bad_rows == 0 && !result.bad_dense) return;
  if (rows_ == 0 && dense_ == 0)
    LOG(WARNING) << "epoch " << epoch << ", batch " << result.batch->index << ": " << result.bad_rows
                 << " row gradients" << (result.bad_dense ? " and the dense gradient" : "") << " hold NaN or Inf; "
                 << WhatBecomesOfThem();
  rows_ += result.bad_rows;
  dense_ += result.bad_dense ? 1 : 0;
}

void BadGradients::LogTotal() const {
  if (rows_ == 0 && dense_ == 0) return;
  LOG(WARNING) << rows_ << " row gradients and " << dense_
               << " dense gradients of this process so far held NaN or Inf; " << WhatBecomesOfThem();
}

std::string BadGradients::WhatBecomesOfThem() const {
  const bool clips = policy_ == table::NanPolicy::kClip;
  return absl::StrCat("runner.nan_policy ", clips ? "clip takes such elements for 0" : "skip leaves such updates out",
                      ". Try a lower learning rate or hyper_parameters.clip_by_norm, and look for huge input values");
}

}  // namespace regatta::worker
