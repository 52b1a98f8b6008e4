// Every round that the workers of a job go through: its name, its message, and what is made of the answers. Sync's own
// two rounds a pass are in comm/sync.cc.
//
// A process that replaces a killed one walks through the rounds of its epoch again and gets the answers of those that
// are over. It finds them by their names, so a name carries the epoch, and whatever else tells its uses apart. Servers
// journal names and payloads: a name is never changed, and old payloads stay readable.
// Thread-safety: pure functions, but for those that take a Team, which have its rules.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/status.h"
#include "run/rounds.pb.h"
#include "run/team.h"

namespace regatta::run {

template <typename Message>
struct Round : RoundId {};

// The bytes of saves, as they are: PassMeter::Serialize, EncodePlace.
using Bytes = std::string;

namespace rounds {

// ---- The beginning of `regatta train`.
Round<Empty> Open();  // the first worker has opened its save root
Round<StartMessage> StartAt();
Round<Empty> Places();  // every worker has found its place in its data
Round<Empty> Start();
Round<ValidatedMessage> ValidatedResumed();  // the epoch that the run resumes after

// ---- A pass. `pass` is EpochName, or the name of an evaluation.
std::string EpochName(uint64_t epoch);
std::string EvaluationName(uint64_t number, uint64_t epochs);  // of a user's program, after so many epochs
Round<EndMessage> EndOf(const std::string& pass);
Round<Bytes> MetricsOf(const std::string& pass);
Round<Count> BadLinesOf(const std::string& pass);
Round<Count> StepsOf(const std::string& pass);  // of the job so far; the last round of an epoch

// ---- The end of an epoch of `regatta train`.
Round<Empty> SavedEpoch(uint64_t epoch);
Round<ValidatedMessage> ValidatedEpoch(uint64_t epoch);
Round<Bytes> StoppedIn(uint64_t epoch);  // where the worker was
Round<Empty> SavedWhereStopped(uint64_t epoch);

// ---- The barriers of an epoch's checkpoints, numbered.
Round<ArrivalMessage> CheckpointArrival(uint64_t epoch, uint64_t number);
Round<VerdictMessage> CheckpointVerdict(uint64_t epoch, uint64_t number);
Round<Bytes> CheckpointMetrics(uint64_t epoch, uint64_t number);

// ---- Fleet's verbs: the use `number` of the verb since so many epochs were done.
Round<Empty> Barrier(uint64_t epochs, uint64_t number);
Round<Numbers> AllReduce(uint64_t epochs, uint64_t number);
Round<Empty> SaveBegins(uint64_t epochs, uint64_t number);
Round<Empty> Saved(uint64_t epochs, uint64_t number);
Round<Empty> LoadBegins(uint64_t epochs, uint64_t number);
Round<LoadedMessage> Loaded(uint64_t epochs, uint64_t number);

}  // namespace rounds

// A message as its round carries it. Decode also reads the forms that versions before these messages wrote.
std::string Encode(const google::protobuf::MessageLite& message);
inline const std::string& Encode(const Bytes& bytes) { return bytes; }
absl::Status Decode(std::string_view bytes, google::protobuf::MessageLite& message);
absl::Status Decode(std::string_view bytes, Count& message);
absl::Status Decode(std::string_view bytes, EndMessage& message);
absl::Status Decode(std::string_view bytes, StartMessage& message);
absl::Status Decode(std::string_view bytes, ValidatedMessage& message);
absl::Status Decode(std::string_view bytes, ArrivalMessage& message);
absl::Status Decode(std::string_view bytes, VerdictMessage& message);
absl::Status Decode(std::string_view bytes, Bytes& message);

// Everybody's message, by rank.
template <typename Message>
absl::StatusOr<std::map<int, Message>> AllGather(Team& team, const Round<Message>& round,
                                                 const std::type_identity_t<absl::StatusOr<Message>>& mine) {
  ASSIGN_OR_RETURN(const Team::Payloads payloads,
                   team.AllGather(round, mine.ok() ? absl::StatusOr<std::string>(Encode(*mine)) : mine.status()));
  std::map<int, Message> messages;
  for (const auto& [rank, payload] : payloads)
    RETURN_IF_ERROR(
        base::Annotate(Decode(payload, messages[rank]), absl::StrCat("worker ", rank, " at '", round.name, "'")));
  return messages;
}

// The first worker's message, or its error, which names it. Of the others `mine` is not used.
template <typename Message>
absl::StatusOr<Message> Broadcast(Team& team, const Round<Message>& round,
                                  const std::type_identity_t<absl::StatusOr<Message>>& mine) {
  ASSIGN_OR_RETURN(auto messages, AllGather(team, round, team.chief() ? mine : Message()));
  return std::move(messages.at(0));
}

absl::StatusOr<uint64_t> AllReduceMax(Team& team, const Round<Count>& round, uint64_t value);
absl::StatusOr<uint64_t> AllReduceSum(Team& team, const Round<Count>& round, uint64_t value);
// How the workers together ended a pass: stopped if any was, by a signal if any worker got one.
absl::StatusOr<EndMessage> GatherEnd(Team& team, const std::string& pass, const EndMessage& mine);
// OK if every worker is; otherwise the first error, which names its worker.
absl::Status AllOk(Team& team, const Round<Empty>& round, const absl::Status& mine);

}  // namespace regatta::run
