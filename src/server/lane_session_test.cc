// Requests that a lane must refuse, and what they must leave alone.
#include "server/lane_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/grouped_keys.h"
#include "server/testing/small_job.h"

namespace regatta::server {
namespace {

struct Answered {
  int code = -1;
  std::string message;
  size_t body = 0;
};

class LaneSessionTest : public testing::Test {
 protected:
  Answered Ask(ps::FrameHeader header, const std::string& body, int lane = 0) {
    header.set_id(++id_);
    wire::FrameWriter writer(header, body.size());
    writer.Append(body.data(), body.size());
    grpc::ByteBuffer request = writer.Finish();
    LaneSession session(*job_, kFirstWorker, lane);
    grpc::ByteBuffer reply = session.Answer(request);
    wire::FrameReader frame(reply);
    EXPECT_EQ(frame.Open(), absl::OkStatus());
    EXPECT_EQ(frame.header().id(), id_);
    return {frame.header().code(), frame.header().message(), frame.body_left()};
  }
  static ps::FrameHeader Sections(ps::Verb verb, uint32_t table, uint32_t keys, uint32_t width) {
    ps::FrameHeader header;
    header.set_verb(verb);
    header.set_samples(1);
    ps::Section* section = header.add_sections();
    section->set_table(table);
    section->set_keys(keys);
    section->set_width(width);
    return header;
  }
  static std::string Bytes(const std::vector<base::Key>& keys, size_t floats = 0) {
    std::string bytes(reinterpret_cast<const char*>(keys.data()), keys.size() * sizeof(base::Key));
    const std::vector<float> ones(floats, 1.0f);
    return bytes.append(reinterpret_cast<const char*>(ones.data()), floats * sizeof(float));
  }

  static std::string FloatBytes(float value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }
  // Four keys with gradient 1, and their rate.
  static ps::FrameHeader RatedPush() {
    ps::FrameHeader header = Sections(ps::PUSH, 0, 4, kSmallDim);
    header.mutable_sections(0)->set_rate(true);
    return header;
  }
  std::string RatedBody(float rate) const { return Bytes(keys_.keys(), 4 * kSmallDim) + FloatBytes(rate); }
  static ps::FrameHeader RatedDense() {
    ps::FrameHeader header;
    header.set_verb(ps::PUSH_DENSE);
    header.set_samples(1);
    header.set_rate(true);
    return header;
  }

  std::unique_ptr<HostedJob> job_ = SmallJob();
  const base::GroupedKeys keys_{{1, 2, 3, 4}};
  uint64_t id_ = 0;
};

constexpr int kInvalid = static_cast<int>(absl::StatusCode::kInvalidArgument);
constexpr int kPrecondition = static_cast<int>(absl::StatusCode::kFailedPrecondition);
constexpr int kOutOfRange = static_cast<int>(absl::StatusCode::kOutOfRange);

TEST_F(LaneSessionTest, PullsAndPushes) {
  const Answered pushed = Ask(Sections(ps::PUSH, 0, 4, kSmallDim), Bytes(keys_.keys(), 4 * kSmallDim));
  EXPECT_EQ(pushed.code, 0) << pushed.message;
  EXPECT_EQ(job_->rows(), 4u);
  const Answered pulled = Ask(Sections(ps::PULL, 0, 4, kSmallDim), Bytes(keys_.keys()));
  EXPECT_EQ(pulled.code, 0) << pulled.message;
  EXPECT_EQ(pulled.body, 4 * kSmallDim * sizeof(float));
}

// Keys of a byte each and rows of 16 bits.
TEST_F(LaneSessionTest, TakesShortKeysAndRows) {
  ps::FrameHeader push = Sections(ps::PUSH, 0, 4, kSmallDim);
  push.mutable_sections(0)->set_key_bytes(1);
  push.set_precision(ps::BFLOAT16);
  std::string body;
  for (const base::Key key : keys_.keys()) body.push_back(static_cast<char>(key));
  for (int i = 0; i < 4 * kSmallDim; ++i) body.append("\x80\x3f", 2);  // 1.0
  const Answered pushed = Ask(push, body);
  EXPECT_EQ(pushed.code, 0) << pushed.message;
  EXPECT_EQ(job_->rows(), 4u);
  ps::FrameHeader pull = Sections(ps::PULL, 0, 4, kSmallDim);
  pull.mutable_sections(0)->set_key_bytes(1);
  pull.set_precision(ps::BFLOAT16);
  EXPECT_EQ(Ask(pull, body.substr(0, 4)).body, 4 * kSmallDim * 2u);
  pull.mutable_sections(0)->set_key_bytes(9);
  EXPECT_EQ(Ask(pull, body.substr(0, 36)).code, kInvalid) << "keys of nine bytes";
  pull.mutable_sections(0)->set_key_bytes(1);
  pull.set_precision(static_cast<ps::Precision>(7));
  EXPECT_EQ(Ask(pull, body.substr(0, 4)).code, kInvalid) << "no such precision";
}

TEST_F(LaneSessionTest, RefusesWhatDoesNotAddUp) {
  const std::string body = Bytes(keys_.keys(), 4 * kSmallDim);
  EXPECT_EQ(Ask(Sections(ps::PUSH, 1, 4, kSmallDim), body).code, kInvalid) << "no such table";
  EXPECT_EQ(Ask(Sections(ps::PUSH, 0, 4, kSmallDim + 1), body).code, kInvalid) << "another width";
  EXPECT_EQ(Ask(Sections(ps::PUSH, 0, 5, kSmallDim), body).code, kInvalid) << "more keys than bytes";
  EXPECT_EQ(Ask(Sections(ps::PUSH, 0, 3, kSmallDim), body).code, kInvalid) << "more bytes than keys";
  EXPECT_EQ(Ask(Sections(ps::PULL, 0, 0xFFFFFFFF, kSmallDim), body).code,
            static_cast<int>(absl::StatusCode::kResourceExhausted));
  std::vector<base::Key> wrong(keys_.keys().rbegin(), keys_.keys().rend());
  EXPECT_EQ(Ask(Sections(ps::PUSH, 0, 4, kSmallDim), Bytes(wrong, 4 * kSmallDim)).code, kInvalid) << "shards descend";
  EXPECT_EQ(Ask(Sections(ps::PULL, 0, 4, kSmallDim), Bytes(wrong)).code, kInvalid) << "shards descend";
  EXPECT_EQ(Ask(Sections(ps::PUSH_DENSE, 0, 4, kSmallDim), body).code, kInvalid) << "a dense verb on a sparse lane";
  EXPECT_EQ(Ask(Sections(ps::HELLO, 0, 4, kSmallDim), body).code, kInvalid);
  ps::FrameHeader dense;
  dense.set_verb(ps::PUSH_DENSE);
  dense.set_samples(1);
  EXPECT_EQ(Ask(dense, std::string(3, 'x'), 1).code, kInvalid) << "a block of another size";
  ps::FrameHeader read;
  read.set_verb(ps::READ_DENSE);
  read.set_shard(99);
  EXPECT_EQ(Ask(read, "", 1).code, kInvalid) << "no such array";
  EXPECT_EQ(job_->rows(), 0u) << "nothing of it was applied";
  EXPECT_EQ(job_->traffic().refused.value(), 11u);
}

// What is written for a section is measured by the section: two of one table would share their keys.
TEST_F(LaneSessionTest, RefusesATableThatComesTwice) {
  job_ = SmallJob(base::Mode::kGeo, 1, 2);
  for (const ps::Verb verb : {ps::PULL, ps::PUSH, ps::ADD}) {
    const size_t floats = verb == ps::PULL ? 0 : kSmallDim;
    ps::FrameHeader twice = Sections(verb, 0, 1, kSmallDim);
    *twice.add_sections() = Sections(verb, 0, 4, kSmallDim).sections(0);
    const Answered refused = Ask(twice, Bytes({keys_.keys()[0]}, floats) + Bytes(keys_.keys(), 4 * floats));
    EXPECT_EQ(refused.code, kInvalid) << ps::Verb_Name(verb);
    EXPECT_EQ(refused.message, "table 0 comes twice in a request") << ps::Verb_Name(verb);
    ps::FrameHeader both = twice;
    both.mutable_sections(1)->set_table(1);
    const Answered taken = Ask(both, Bytes({keys_.keys()[0]}, floats) + Bytes(keys_.keys(), 4 * floats));
    EXPECT_EQ(taken.code, 0) << ps::Verb_Name(verb) << ": " << taken.message;
  }
  EXPECT_EQ(job_->rows(), 5u);
}

// The frames of a push are one request: their keys ascend from one to the next, too.
TEST_F(LaneSessionTest, RefusesAPushWhoseFramesDescend) {
  const auto frame = [&](uint32_t part, base::Key key, bool more) {
    ps::FrameHeader header = Sections(ps::PUSH, 0, 1, kSmallDim);
    header.set_id(part);
    header.set_part(part);
    header.set_more(more);
    const std::string body = Bytes({key}, kSmallDim);
    wire::FrameWriter writer(header, body.size());
    writer.Append(body.data(), body.size());
    return writer.Finish();
  };
  job_ = SmallJob(base::Mode::kSync);
  LaneSession session(*job_, kFirstWorker, 0);
  const auto refusal = [&](grpc::ByteBuffer request) {
    grpc::ByteBuffer reply = session.Answer(request);
    wire::FrameReader answer(reply);
    EXPECT_EQ(answer.Open(), absl::OkStatus());
    return answer.header().message();
  };
  ASSERT_GT(base::ShardOf(keys_.keys()[3]), base::ShardOf(keys_.keys()[0]));
  EXPECT_EQ(refusal(frame(1, keys_.keys()[3], true)), "");
  EXPECT_THAT(refusal(frame(2, keys_.keys()[0], false)),
              testing::HasSubstr("a lane's keys are its own, grouped by shard"));
}

TEST_F(LaneSessionTest, AddsInGeoOnly) {
  const auto codes = [&] {
    ps::FrameHeader dense;
    dense.set_verb(ps::ADD_DENSE);
    return std::pair(Ask(Sections(ps::ADD, 0, 4, kSmallDim), Bytes(keys_.keys(), 4 * kSmallDim)).code,
                     Ask(dense, Bytes({}, kSmallDense), 1).code);
  };
  const float before = job_->dense().Values()[0];
  EXPECT_EQ(codes(), std::pair(kPrecondition, kPrecondition));
  EXPECT_EQ(job_->rows(), 0u);
  EXPECT_EQ(job_->dense().Values()[0], before);
  job_ = SmallJob(base::Mode::kGeo);
  EXPECT_EQ(codes(), std::pair(0, 0));
  EXPECT_EQ(job_->rows(), 4u);
}

TEST_F(LaneSessionTest, NumbersThatCannotBeAreRefused) {
  job_ = SmallJob(base::Mode::kSync, 2);
  for (const ps::Verb verb : {ps::PUSH, ps::PULL, ps::BEGIN, ps::LEAVE}) {
    for (const uint64_t number : {uint64_t{1} << 48, uint64_t{1} << 63, ~uint64_t{0}}) {
      ps::FrameHeader step = Sections(verb, 0, 0, kSmallDim);
      step.set_step(number);
      EXPECT_EQ(Ask(step, "").code, kOutOfRange) << ps::Verb_Name(verb) << " of step " << number;
      ps::FrameHeader pass = Sections(verb, 0, 0, kSmallDim);
      pass.set_pass(number);
      EXPECT_EQ(Ask(pass, "").code, kOutOfRange) << ps::Verb_Name(verb) << " of pass " << number;
    }
  }
}

TEST_F(LaneSessionTest, AStepOfSyncWaitsForEverybodyWhateverItsPass) {
  job_ = SmallJob(base::Mode::kSync, 2);
  ps::FrameHeader begin;
  begin.set_verb(ps::BEGIN);
  EXPECT_EQ(Ask(begin, "").code, 0);
  ps::FrameHeader push = Sections(ps::PUSH, 0, 4, kSmallDim);
  push.set_pass(1);
  EXPECT_EQ(Ask(push, Bytes(keys_.keys(), 4 * kSmallDim)).code, kPrecondition) << "no pass 1 has begun";
  push.set_pass(0);
  push.set_step(100);
  EXPECT_EQ(Ask(push, Bytes(keys_.keys(), 4 * kSmallDim)).code, kOutOfRange) << "far ahead";
  push.set_step(0);
  EXPECT_EQ(Ask(push, Bytes(keys_.keys(), 4 * kSmallDim)).code, 0);
  EXPECT_EQ(job_->rows(), 0u) << "worker 1 has not brought its part";
}

TEST_F(LaneSessionTest, SamplesAreCounted) {
  for (const uint32_t samples : {0u, (1u << 24) + 1, ~0u}) {
    ps::FrameHeader push = Sections(ps::PUSH, 0, 4, kSmallDim);
    push.set_samples(samples);
    EXPECT_EQ(Ask(push, Bytes(keys_.keys(), 4 * kSmallDim)).code, kInvalid) << samples;
    ps::FrameHeader dense;
    dense.set_verb(ps::PUSH_DENSE);
    dense.set_samples(samples);
    EXPECT_EQ(Ask(dense, Bytes({}, kSmallDense), 1).code, kInvalid) << samples;
  }
}

// sgd: a row that begins near 0 moves by the rate times the gradient, 1.
TEST_F(LaneSessionTest, AppliesAPushWithItsLearningRate) {
  const auto value = [&] {
    float row[kSmallDim];
    const base::GroupedKeys key({1});
    EXPECT_TRUE(job_->sparse(0).Pull(key.view(), base::StepKind::kTrain, {row, kSmallDim, kSmallDim}).ok());
    return row[0];
  };
  const float begin = value();
  EXPECT_EQ(Ask(RatedPush(), RatedBody(0.75f)).code, 0);
  EXPECT_EQ(value(), begin - 0.75f);
  const float dense = job_->dense().Values()[0];
  EXPECT_EQ(Ask(RatedDense(), Bytes({}, kSmallDense) + FloatBytes(0.25f), 1).code, 0);
  EXPECT_EQ(job_->dense().Values()[0], dense - 0.25f);
}

TEST_F(LaneSessionTest, RefusesLearningRatesThatCannotBe) {
  const std::vector<float> dense(job_->dense().Values().begin(), job_->dense().Values().end());
  for (const base::Mode mode : {base::Mode::kAsync, base::Mode::kSync}) {
    job_ = SmallJob(mode, 2);  // in sync a part that is taken waits for the other worker's
    for (const float rate : {std::nanf(""), -1.0f, INFINITY, -INFINITY, 2e6f}) {
      EXPECT_EQ(Ask(RatedPush(), RatedBody(rate)).code, kInvalid) << rate;
      EXPECT_EQ(Ask(RatedDense(), Bytes({}, kSmallDense) + FloatBytes(rate), 1).code, kInvalid) << rate;
    }
    EXPECT_EQ(Ask(RatedPush(), Bytes(keys_.keys(), 4 * kSmallDim)).code, kInvalid) << "the rate is missing";
    EXPECT_EQ(Ask(Sections(ps::PUSH, 0, 4, kSmallDim), RatedBody(0.5f)).code, kInvalid)
        << "as an earlier server has it";
    EXPECT_EQ(Ask(RatedDense(), Bytes({}, kSmallDense), 1).code, kInvalid) << "the rate is missing";
    ps::FrameHeader unrated = RatedDense();
    unrated.set_rate(false);
    EXPECT_EQ(Ask(unrated, Bytes({}, kSmallDense) + FloatBytes(0.5f), 1).code, kInvalid) << "as an earlier server";
    EXPECT_EQ(job_->rows(), 0u) << "nothing of it was applied";
    EXPECT_EQ(job_->dense().updates(), 0u);
    EXPECT_TRUE(std::equal(dense.begin(), dense.end(), job_->dense().Values().begin()));
  }
}

TEST_F(LaneSessionTest, OnlyGradientsHaveALearningRate) {
  job_ = SmallJob(base::Mode::kGeo);
  for (const ps::Verb verb : {ps::ADD, ps::COMBINE, ps::PULL, ps::LOAD_ROWS}) {
    ps::FrameHeader header = RatedPush();
    header.set_verb(verb);
    const Answered refused = Ask(header, RatedBody(0.5f));
    EXPECT_EQ(refused.code, kInvalid) << ps::Verb_Name(verb);
    EXPECT_THAT(refused.message, testing::HasSubstr("brings a learning rate where it has none"));
  }
  for (const ps::Verb verb : {ps::ADD_DENSE, ps::COMBINE_DENSE, ps::PULL_DENSE}) {
    ps::FrameHeader header = RatedDense();
    header.set_verb(verb);
    EXPECT_EQ(Ask(header, Bytes({}, kSmallDense) + FloatBytes(0.5f), 1).code, kInvalid) << ps::Verb_Name(verb);
  }
  EXPECT_EQ(job_->rows(), 0u);
}

// The frames of a push are one update of a table.
TEST_F(LaneSessionTest, RefusesAPushWhoseFramesBringDifferentLearningRates) {
  job_ = SmallJob(base::Mode::kSync);
  LaneSession session(*job_, kFirstWorker, 0);
  const auto ask = [&](uint32_t part, base::Key key, std::optional<float> rate) {
    ps::FrameHeader header = Sections(ps::PUSH, 0, 1, kSmallDim);
    header.set_id(part);
    header.set_part(part);
    header.set_more(part < 2);
    header.mutable_sections(0)->set_rate(rate.has_value());
    const std::string body = Bytes({key}, kSmallDim) + (rate.has_value() ? FloatBytes(*rate) : "");
    wire::FrameWriter writer(header, body.size());
    writer.Append(body.data(), body.size());
    grpc::ByteBuffer request = writer.Finish(), reply = session.Answer(request);
    wire::FrameReader answer(reply);
    EXPECT_EQ(answer.Open(), absl::OkStatus());
    return answer.header().message();
  };
  EXPECT_EQ(ask(1, keys_.keys()[0], 0.5f), "");
  EXPECT_EQ(ask(2, keys_.keys()[3], std::nullopt),
            "table t: the frames of a push bring the learning rate 0.5 and no learning rate");
  EXPECT_EQ(ask(1, keys_.keys()[0], 0.5f), "");
  EXPECT_EQ(ask(2, keys_.keys()[3], 0.5f), "");
  EXPECT_EQ(job_->rows(), 2u);
}

TEST_F(LaneSessionTest, RowsAreNotReplacedWhileAStepWaits) {
  job_ = SmallJob(base::Mode::kSync, 2);
  EXPECT_EQ(Ask(Sections(ps::PUSH, 0, 4, kSmallDim), Bytes(keys_.keys(), 4 * kSmallDim)).code, 0);
  ps::FrameHeader clear;
  clear.set_verb(ps::CLEAR_LANE);
  const Answered refused = Ask(clear, "");
  EXPECT_EQ(refused.code, kPrecondition);
  EXPECT_THAT(refused.message, testing::HasSubstr("step 0 waits for worker 1"));
}

TEST_F(LaneSessionTest, ServesNobodyWhoHasLeft) {
  job_->roster().Leave(kFirstWorker);
  EXPECT_EQ(Ask(Sections(ps::PULL, 0, 4, kSmallDim), Bytes(keys_.keys())).code,
            static_cast<int>(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace regatta::server
