#include "fleet/team.h"

#include "fleet/worker_node.h"

namespace regatta::fleet {

bool Team::chief() const { return alone() || worker_->first(); }

int Team::size() const { return alone() ? 1 : worker_->workers(); }

absl::StatusOr<std::map<int, std::string>> Team::AllGather(const std::string& name,
                                                           const absl::StatusOr<std::string>& payload,
                                                           std::optional<uint64_t> round) {
  if (alone()) {
    RETURN_IF_ERROR(payload.status());
    return std::map<int, std::string>{{0, *payload}};
  }
  auto payloads = payload.ok() ? worker_->Gather(name, *payload, round)
                               : worker_->Gather(name, std::string(payload.status().message()), round,
                                                 WorkerNode::Outcome::kFailure);
  RETURN_IF_ERROR(payload.status());
  RETURN_IF_ERROR(payloads.status());
  if (!payloads->contains(0))
    return absl::AbortedError("worker 0, which saves the model, has left the job; its log says why");
  return payloads;
}

absl::StatusOr<std::string> Team::Broadcast(const std::string& name, const absl::StatusOr<std::string>& payload,
                                            std::optional<uint64_t> round) {
  ASSIGN_OR_RETURN(const auto payloads, AllGather(name, chief() ? payload : std::string(), round));
  return payloads.at(0);
}

absl::StatusOr<uint64_t> Team::AllReduceMax(const std::string& name, uint64_t value) {
  if (alone()) return value;
  return worker_->AgreeMax(name, value);
}

absl::StatusOr<bool> Team::Any(const std::string& name, bool yes) {
  ASSIGN_OR_RETURN(const uint64_t most, AllReduceMax(name, yes ? 1 : 0));
  return most > 0;
}

absl::Status Team::AllOk(const std::string& name, const absl::Status& mine) {
  return AllGather(name, mine.ok() ? absl::StatusOr<std::string>(std::string()) : mine, {}).status();
}

bool Team::Completed(const std::string& name, uint64_t round) const {
  return !alone() && worker_->resume_point().Completed(name, round);
}

const client::ResumePoint* Team::resume_point() const {
  return alone() || !worker_->resume_point().returns() ? nullptr : &worker_->resume_point();
}

void Team::AskToStop() {
  if (!alone()) worker_->AskToStop();
}

bool Team::stop_asked() const { return !alone() && worker_->stop_asked(); }

}  // namespace regatta::fleet
