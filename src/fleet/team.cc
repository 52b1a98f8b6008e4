#include "fleet/team.h"

#include "fleet/worker.h"

namespace regatta::fleet {

bool Team::chief() const { return alone() || worker_->first(); }

int Team::size() const { return alone() ? 1 : worker_->workers(); }

absl::StatusOr<std::map<int, std::string>> Team::Share(const std::string& name,
                                                       const absl::StatusOr<std::string>& payload,
                                                       std::optional<uint64_t> round) {
  if (alone()) {
    RETURN_IF_ERROR(payload.status());
    return std::map<int, std::string>{{0, *payload}};
  }
  auto payloads = payload.ok()
                      ? worker_->Gather(name, *payload, round)
                      : worker_->Gather(name, std::string(payload.status().message()), round, Worker::Brings::kFailure);
  RETURN_IF_ERROR(payload.status());
  RETURN_IF_ERROR(payloads.status());
  if (!payloads->contains(0))
    return absl::AbortedError("worker 0, which saves the model, has left the job; its log says why");
  return payloads;
}

absl::StatusOr<std::string> Team::FromChief(const std::string& name, const absl::StatusOr<std::string>& payload,
                                            std::optional<uint64_t> round) {
  ASSIGN_OR_RETURN(const auto payloads, Share(name, chief() ? payload : std::string(), round));
  return payloads.at(0);
}

absl::StatusOr<uint64_t> Team::Most(const std::string& name, uint64_t value) {
  if (alone()) return value;
  return worker_->AgreeMax(name, value);
}

absl::StatusOr<bool> Team::Any(const std::string& name, bool yes) {
  ASSIGN_OR_RETURN(const uint64_t most, Most(name, yes ? 1 : 0));
  return most > 0;
}

absl::Status Team::AllWell(const std::string& name, const absl::Status& mine) {
  return Share(name, mine.ok() ? absl::StatusOr<std::string>(std::string()) : mine, {}).status();
}

bool Team::Met(const std::string& name, uint64_t round) const {
  return !alone() && worker_->standing().Met(name, round);
}

const client::Standing* Team::standing() const {
  return alone() || !worker_->standing().returns() ? nullptr : &worker_->standing();
}

void Team::AskToStop() {
  if (!alone()) worker_->AskToStop();
}

bool Team::stop_asked() const { return !alone() && worker_->stop_asked(); }

}  // namespace regatta::fleet
