#include "fleet/server_team.h"

namespace regatta::fleet {

absl::StatusOr<run::Team::Payloads> ServerTeam::AllGather(const run::RoundId& round,
                                                          const absl::StatusOr<std::string>& payload) {
  auto payloads = payload.ok() ? worker_.Gather(round.name, *payload, round.number)
                               : worker_.Gather(round.name, std::string(payload.status().message()), round.number,
                                                WorkerNode::Outcome::kFailure);
  RETURN_IF_ERROR(payload.status());
  RETURN_IF_ERROR(payloads.status());
  if (!payloads->contains(0))
    return absl::AbortedError("worker 0, which saves the model, has left the job; its log says why");
  return payloads;
}

bool ServerTeam::Completed(const run::RoundId& round) const {
  return worker_.resume_point().Completed(round.name, round.number);
}

const client::ResumePoint* ServerTeam::resume_point() const {
  return worker_.resume_point().returns() ? &worker_.resume_point() : nullptr;
}

}  // namespace regatta::fleet
