#include "run/rounds.h"

#include <gtest/gtest.h>

#include <bit>

#include "run/best_epoch.h"
#include "run/worker_places.h"

namespace regatta::run {
namespace {

template <typename Message>
Message Decoded(const std::string& bytes) {
  Message message;
  EXPECT_EQ(Decode(bytes, message), absl::OkStatus());
  return message;
}

// What the version before rounds.proto wrote, and a journal may hold.
TEST(Rounds, PayloadsOfTheVersionBeforeAreRead) {
  EXPECT_EQ(Decoded<Count>("120").value(), 120u);
  EXPECT_EQ(Decoded<Count>("0").value(), 0u);

  EXPECT_TRUE(Decoded<EndMessage>("1").stopped());
  EXPECT_FALSE(Decoded<EndMessage>("0").stopped());

  const std::string places = EncodePlaces({{1, {{.pass = 3, .low = 9}, 78, ""}}});
  const std::string score = absl::StrCat(std::bit_cast<uint64_t>(0.75));
  const auto start = Decoded<StartMessage>("3 120 3 2 " + score + "\n" + places);
  EXPECT_EQ(start.epoch(), 3u);
  EXPECT_EQ(start.first_step(), 120u);
  EXPECT_EQ(start.unvalidated(), 2u);
  EXPECT_EQ(BestFrom(start)->epoch, 1u);
  EXPECT_EQ(BestFrom(start)->score, 0.75);
  EXPECT_EQ(start.places(), places);
  const auto fresh = Decoded<StartMessage>("0 0 0 0 0\n");
  EXPECT_FALSE(fresh.has_unvalidated());
  EXPECT_FALSE(fresh.has_best());
  EXPECT_TRUE(fresh.places().empty());

  const auto validated = Decoded<ValidatedMessage>("1 5 " + score);
  EXPECT_EQ(validated.after(), ValidatedMessage::STOP_EARLY);
  EXPECT_EQ(BestFrom(validated)->epoch, 4u);

  const auto arrival = Decoded<ArrivalMessage>("es2place");
  EXPECT_TRUE(arrival.ended());
  EXPECT_TRUE(arrival.stop());
  EXPECT_EQ(arrival.due(), ArrivalMessage::STEPS);
  EXPECT_EQ(arrival.place(), "place");
  EXPECT_FALSE(Decoded<ArrivalMessage>("pg0").ended());

  EXPECT_EQ(Decoded<VerdictMessage>("not_due 4 12").what(), VerdictMessage::NOT_DUE);
  EXPECT_EQ(Decoded<VerdictMessage>("not_due 4 12").since_snapshot(), 12u);
  EXPECT_EQ(Decoded<VerdictMessage>("cut 4 12").what(), VerdictMessage::SNAPSHOT);
  EXPECT_EQ(Decoded<VerdictMessage>("left_out 4 12").plan(), 4u);
}

TEST(Rounds, MessagesAreReadAsTheyWereWritten) {
  StartMessage start;
  for (const uint64_t epoch : {uint64_t{0}, uint64_t{1}, uint64_t{48}, ~uint64_t{0}}) {
    start.set_epoch(epoch);
    start.set_places("0 0 0 0 0\n");
    EXPECT_EQ(Encode(Decoded<StartMessage>(Encode(start))), Encode(start)) << epoch;
  }
  StartMessage first;  // of a run that resumes in its first epoch: all that comes before the folder is zero or empty
  first.set_places("");
  first.set_folder("model/checkpoint/0-7");
  EXPECT_EQ(Decoded<StartMessage>(Encode(first)).folder(), "model/checkpoint/0-7");
  for (uint64_t value = 0; value < 1000; ++value) {
    Count count;
    count.set_value(value);
    EXPECT_EQ(Decoded<Count>(Encode(count)).value(), value);
  }
  for (const bool ended : {false, true}) {
    ArrivalMessage arrival;
    arrival.set_ended(ended);
    arrival.set_place("pg0");
    EXPECT_EQ(Decoded<ArrivalMessage>(Encode(arrival)).place(), "pg0");
    EXPECT_EQ(Decoded<ArrivalMessage>(Encode(arrival)).ended(), ended);
  }
}

TEST(Rounds, BytesThatAreNoMessageAreAnError) {
  Count count;
  EXPECT_FALSE(Decode("12x", count).ok());
  EXPECT_FALSE(Decode("1 2", count).ok());
  EXPECT_FALSE(Decode("\x08", count).ok());
  StartMessage start;
  EXPECT_FALSE(Decode("3 120", start).ok());
  VerdictMessage verdict;
  EXPECT_FALSE(Decode("cut", verdict).ok());
  EXPECT_FALSE(Decode("other 1 2", verdict).ok());
  ArrivalMessage arrival;
  EXPECT_FALSE(Decode("pg9", arrival).ok());
  EXPECT_FALSE(Decode("p", arrival).ok());
}

// A journal may hold them.
TEST(Rounds, NamesStayAsTheyAre) {
  EXPECT_EQ(rounds::Open().name, "open");
  EXPECT_EQ(rounds::StartAt().name, "start at");
  EXPECT_EQ(rounds::Places().name, "places");
  EXPECT_EQ(rounds::Start().name, "start");
  EXPECT_EQ(rounds::ValidatedResumed().name, "validated the epoch resumed after");
  EXPECT_EQ(rounds::EndOf(rounds::EpochName(3)).name, "end of epoch 3");
  EXPECT_EQ(rounds::MetricsOf(rounds::EpochName(3)).name, "metrics of epoch 3");
  EXPECT_EQ(rounds::StepsOf(rounds::EpochName(3)).name, "steps of epoch 3");
  EXPECT_EQ(rounds::SavedEpoch(3).name, "saved epoch 3");
  EXPECT_EQ(rounds::ValidatedEpoch(3).name, "validated epoch 3");
  EXPECT_EQ(rounds::StoppedIn(3).name, "stopped in epoch 3");
  EXPECT_EQ(rounds::SavedWhereStopped(3).name, "saved where epoch 3 stopped");
  EXPECT_EQ(rounds::CheckpointArrival(3, 5).name, "cut in epoch 3");
  EXPECT_EQ(rounds::CheckpointArrival(3, 5).number, 5u);
  EXPECT_EQ(rounds::CheckpointVerdict(3, 5).name, "cut in epoch 3 is made");
  EXPECT_EQ(rounds::CheckpointMetrics(3, 5).name, "cut in epoch 3 counts");
}

}  // namespace
}  // namespace regatta::run
