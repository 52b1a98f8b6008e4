#include "run/rounds.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace regatta::run {
namespace rounds {

Round<Empty> Open() { return {{"open"}}; }
Round<StartMessage> StartAt() { return {{"start at"}}; }
Round<Empty> Places() { return {{"places"}}; }
Round<Empty> Start() { return {{"start"}}; }
Round<ValidatedMessage> ValidatedResumed() { return {{"validated the epoch resumed after"}}; }

std::string EpochName(uint64_t epoch) { return absl::StrCat("epoch ", epoch); }
std::string EvaluationName(uint64_t number, uint64_t epochs) {
  return absl::StrCat("evaluation ", number, " after ", epochs, " epochs");
}
Round<EndMessage> EndOf(const std::string& pass) { return {{absl::StrCat("end of ", pass)}}; }
Round<Bytes> MetricsOf(const std::string& pass) { return {{absl::StrCat("metrics of ", pass)}}; }
Round<Count> BadLinesOf(const std::string& pass) { return {{absl::StrCat("bad lines of ", pass)}}; }
Round<Count> StepsOf(const std::string& pass) { return {{absl::StrCat("steps of ", pass)}}; }

Round<Empty> SavedEpoch(uint64_t epoch) { return {{absl::StrCat("saved epoch ", epoch)}}; }
Round<ValidatedMessage> ValidatedEpoch(uint64_t epoch) { return {{absl::StrCat("validated epoch ", epoch)}}; }
Round<Bytes> StoppedIn(uint64_t epoch) { return {{absl::StrCat("stopped in epoch ", epoch)}}; }
Round<Empty> SavedWhereStopped(uint64_t epoch) { return {{absl::StrCat("saved where epoch ", epoch, " stopped")}}; }

Round<ArrivalMessage> CheckpointArrival(uint64_t epoch, uint64_t number) {
  return {{absl::StrCat("cut in epoch ", epoch), number}};
}
Round<VerdictMessage> CheckpointVerdict(uint64_t epoch, uint64_t number) {
  return {{absl::StrCat("cut in epoch ", epoch, " is made"), number}};
}
Round<Bytes> CheckpointMetrics(uint64_t epoch, uint64_t number) {
  return {{absl::StrCat("cut in epoch ", epoch, " counts"), number}};
}

namespace {

// The number is a part of the name, because a server remembers only the last few rounds of one name.
RoundId VerbRound(const char* verb, uint64_t epochs, uint64_t number) {
  return {absl::StrCat(verb, " ", number, " after ", epochs, " epochs")};
}

}  // namespace

Round<Empty> Barrier(uint64_t epochs, uint64_t number) { return {VerbRound("barrier_worker", epochs, number)}; }
Round<Numbers> AllReduce(uint64_t epochs, uint64_t number) { return {VerbRound("all_reduce_worker", epochs, number)}; }
Round<Empty> SaveBegins(uint64_t epochs, uint64_t number) {
  return {VerbRound("begin of save_persistables", epochs, number)};
}
Round<Empty> Saved(uint64_t epochs, uint64_t number) { return {VerbRound("save_persistables", epochs, number)}; }
Round<Empty> LoadBegins(uint64_t epochs, uint64_t number) { return {VerbRound("begin of load_model", epochs, number)}; }
Round<LoadedMessage> Loaded(uint64_t epochs, uint64_t number) { return {VerbRound("load_model", epochs, number)}; }

}  // namespace rounds

namespace {

// Payloads of the versions before rounds.proto begin with a digit or a letter; messages begin with the tag of a field
// below 6.
bool IsOldForm(std::string_view bytes) { return !bytes.empty() && bytes.front() >= '0'; }

absl::Status Unreadable(std::string_view bytes) {
  return absl::InternalError(absl::StrCat("cannot read the ", bytes.size(), " bytes that it brings"));
}

absl::Status Parse(std::string_view bytes, google::protobuf::MessageLite& message) {
  const bool fits = bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (fits && message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return Unreadable(bytes);
}

// "3 0 12": whole numbers, so many of them.
absl::StatusOr<std::vector<uint64_t>> ParseOldNumbers(std::string_view text, size_t count) {
  std::vector<uint64_t> numbers;
  for (const absl::string_view word : absl::StrSplit(base::View(text), ' ')) {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(word, &number)) return Unreadable(text);
    numbers.push_back(number);
  }
  if (numbers.size() != count) return Unreadable(text);
  return numbers;
}

// 0 = none, else the epoch + 1 and the bits of the score.
void TakeOldBest(uint64_t epoch, uint64_t score, BestMessage* best) {
  best->set_epoch(epoch - 1);
  best->set_score(std::bit_cast<double>(score));
}

}  // namespace

std::string Encode(const google::protobuf::MessageLite& message) { return message.SerializeAsString(); }

absl::Status Decode(std::string_view bytes, google::protobuf::MessageLite& message) { return Parse(bytes, message); }

absl::Status Decode(std::string_view bytes, Bytes& message) {
  message = std::string(bytes);
  return absl::OkStatus();
}

absl::Status Decode(std::string_view bytes, Count& message) {
  if (!IsOldForm(bytes)) return Parse(bytes, message);
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ParseOldNumbers(bytes, 1));
  message.set_value(numbers[0]);
  return absl::OkStatus();
}

// The old form: 1 if the worker was stopped.
absl::Status Decode(std::string_view bytes, EndMessage& message) {
  if (!IsOldForm(bytes)) return Parse(bytes, message);
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ParseOldNumbers(bytes, 1));
  message.set_stopped(numbers[0] > 0);
  return absl::OkStatus();
}

// The old form: epoch, first step, unvalidated + 1, the best, and behind the line the places.
absl::Status Decode(std::string_view bytes, StartMessage& message) {
  if (!IsOldForm(bytes)) return Parse(bytes, message);
  const size_t line = std::min(bytes.find('\n'), bytes.size() - 1);
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ParseOldNumbers(bytes.substr(0, line), 5));
  message.set_epoch(numbers[0]);
  message.set_first_step(numbers[1]);
  if (numbers[2] > 0) message.set_unvalidated(numbers[2] - 1);
  if (numbers[3] > 0) TakeOldBest(numbers[3], numbers[4], message.mutable_best());
  message.set_places(std::string(bytes.substr(line + 1)));
  return absl::OkStatus();
}

absl::Status Decode(std::string_view bytes, ValidatedMessage& message) {
  if (!IsOldForm(bytes)) return Parse(bytes, message);
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ParseOldNumbers(bytes, 3));
  message.set_after(static_cast<ValidatedMessage::After>(std::min<uint64_t>(numbers[0], ValidatedMessage::STOPPED)));
  if (numbers[1] > 0) TakeOldBest(numbers[1], numbers[2], message.mutable_best());
  return absl::OkStatus();
}

// The old form: 'p' or 'e', 's' or 'g', '0' to '2', and the place.
absl::Status Decode(std::string_view bytes, ArrivalMessage& message) {
  if (!IsOldForm(bytes)) return Parse(bytes, message);
  if (bytes.size() < 3 || bytes[2] < '0' || bytes[2] > '2') return Unreadable(bytes);
  message.set_ended(bytes[0] != 'p');
  message.set_stop(bytes[1] == 's');
  message.set_due(static_cast<ArrivalMessage::Due>(bytes[2] - '0'));
  message.set_place(std::string(bytes.substr(3)));
  return absl::OkStatus();
}

// The old form: "cut 12 0".
absl::Status Decode(std::string_view bytes, VerdictMessage& message) {
  if (!IsOldForm(bytes)) return Parse(bytes, message);
  const std::string_view what = bytes.substr(0, bytes.find(' '));
  if (what != "not_due" && what != "cut" && what != "left_out") return Unreadable(bytes);
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers,
                   ParseOldNumbers(bytes.substr(std::min(what.size() + 1, bytes.size())), 2));
  message.set_what(what == "cut"        ? VerdictMessage::SNAPSHOT
                   : what == "left_out" ? VerdictMessage::LEFT_OUT
                                        : VerdictMessage::NOT_DUE);
  message.set_plan(numbers[0]);
  message.set_since_snapshot(numbers[1]);
  return absl::OkStatus();
}

namespace {

Count CountOf(uint64_t value) {
  Count count;
  count.set_value(value);
  return count;
}

}  // namespace

// Of the answers alone: if the round was over before, this worker's is its predecessor's.
absl::StatusOr<uint64_t> AllReduceMax(Team& team, const Round<Count>& round, uint64_t value) {
  ASSIGN_OR_RETURN(const auto counts, AllGather(team, round, CountOf(value)));
  uint64_t most = 0;
  for (const auto& [rank, count] : counts) most = std::max(most, count.value());
  return most;
}

absl::StatusOr<uint64_t> AllReduceSum(Team& team, const Round<Count>& round, uint64_t value) {
  ASSIGN_OR_RETURN(const auto counts, AllGather(team, round, CountOf(value)));
  uint64_t sum = 0;
  for (const auto& [rank, count] : counts) sum += count.value();
  return sum;
}

absl::StatusOr<EndMessage> GatherEnd(Team& team, const std::string& pass, const EndMessage& mine) {
  ASSIGN_OR_RETURN(const auto ends, AllGather(team, rounds::EndOf(pass), mine));
  EndMessage all;
  for (const auto& [rank, end] : ends) {
    all.set_stopped(all.stopped() || end.stopped());
    all.set_signal(std::max(all.signal(), end.signal()));
    all.set_out_of_time(all.out_of_time() || end.out_of_time());
  }
  return all;
}

absl::Status AllOk(Team& team, const Round<Empty>& round, const absl::Status& mine) {
  return AllGather(team, round, mine.ok() ? absl::StatusOr<Empty>(Empty()) : mine).status();
}

}  // namespace regatta::run
