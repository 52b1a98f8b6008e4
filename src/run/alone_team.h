// A team of one: a process that trains without servers. Every round is over at once, and there is nobody to ask to
// stop.
// Thread-safety: as Team.
#pragma once

#include "run/team.h"

namespace regatta::run {

class AloneTeam : public Team {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::StatusOr<Payloads> AllGather(const RoundId&, const absl::StatusOr<std::string>& payload) override {
    RETURN_IF_ERROR(payload.status());
    return Payloads{{0, *payload}};
  }
  bool Completed(const RoundId&) const override { return false; }
  const client::ResumePoint* resume_point() const override { return nullptr; }
  void AskToStop() override {}
  bool stop_asked() const override { return false; }
};

}  // namespace regatta::run
