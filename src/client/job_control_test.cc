#include "client/job_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "base/grouped_keys.h"
#include "base/testing/test_folder.h"
#include "client/connection.h"
#include "client/testing/served_job.h"

namespace regatta::client {
namespace {

using ::testing::HasSubstr;
using Payloads = std::map<int, std::string>;

absl::StatusOr<std::unique_ptr<JobControl>> JoinWith(const ClientOptions& options) {
  ASSIGN_OR_RETURN(const JobLayout layout, JobLayout::Of(options));
  return JobControl::Join(options, layout);
}

// Every rank joins and runs `fn`, on a thread of its own.
void InWorkers(const ServedJob& job, int workers, const std::function<void(JobControl& control)>& fn) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < workers; ++rank)
    threads.emplace_back([&, rank] {
      auto control = JoinWith(job.options(rank));
      ASSERT_EQ(control.status(), absl::OkStatus());
      fn(**control);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(JobControl, AGatherBringsEverybodysPayload) {
  ServedJob job(3, 2);
  InWorkers(job, 3, [](JobControl& control) {
    EXPECT_EQ(control.workers(), 3);
    EXPECT_EQ(control.servers(), 2);
    EXPECT_FALSE(control.resume_point().returns());
    EXPECT_EQ(control.loaded().identity(), 0u);
    for (int round = 0; round < 3; ++round) {  // of one name
      const auto payload = [round](int rank) { return absl::StrCat(rank, " in round ", round); };
      const auto all = control.Gather("again", payload(control.rank()));
      ASSERT_EQ(all.status(), absl::OkStatus());
      EXPECT_EQ(*all, (Payloads{{0, payload(0)}, {1, payload(1)}, {2, payload(2)}}));
    }
    const auto nothing = control.Gather("barrier", "not asked for", {.reply = GatherReply::kNothing});
    ASSERT_EQ(nothing.status(), absl::OkStatus());
    EXPECT_EQ(*nothing, Payloads());
    control.Goodbye(absl::OkStatus());
  });
  for (const absl::Status& end : job.Ends()) EXPECT_EQ(end, absl::OkStatus());
}

TEST(JobControl, ARoundOfItsOwnNumberCanBeAskedForAgain) {
  ServedJob job(1);
  const auto control = JoinWith(job.options(0)).value();
  EXPECT_EQ(control->Gather("r", "first", {.round = 4}).value(), (Payloads{{0, "first"}}));
  EXPECT_EQ(control->Gather("r", "second", {.round = 4}).value(), (Payloads{{0, "first"}}));  // it is over
  EXPECT_EQ(control->Gather("r", "third").value(), (Payloads{{0, "third"}}));                 // of round 5
  control->Goodbye(absl::OkStatus());
}

TEST(JobControl, AFailureIsEverybodysAnswer) {
  ServedJob job(2);
  InWorkers(job, 2, [](JobControl& control) {
    const auto outcome = control.rank() == 1 ? GatherOutcome::kFailure : GatherOutcome::kResult;
    const auto all = control.Gather("save", control.rank() == 1 ? "the disk is full" : "", {.outcome = outcome});
    EXPECT_FALSE(all.ok());
    EXPECT_THAT(std::string(all.status().message()), HasSubstr("'save'"));
    EXPECT_THAT(std::string(all.status().message()), HasSubstr("the disk is full"));
    const auto again = control.Gather("save", absl::StrCat(control.rank()), {.round = 0});  // the round is not over
    ASSERT_EQ(again.status(), absl::OkStatus());
    EXPECT_EQ(again->size(), 2u);
    control.Goodbye(absl::OkStatus());
  });
}

TEST(JobControl, AGatherThatOthersDoNotComeToNamesThem) {
  ServedJob job(2);
  InWorkers(job, 2, [](JobControl& control) {
    if (control.rank() == 0) {
      const auto late = control.Gather("alone", "", {.timeout = std::chrono::milliseconds(200)});
      EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
      EXPECT_THAT(std::string(late.status().message()), HasSubstr("worker 1"));
      const auto cancelled = control.Gather("stopped", "", {.cancelled = [] { return true; }});
      EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled) << cancelled.status();
    }
    EXPECT_EQ(control.Gather("end", "").status(), absl::OkStatus());
    control.Goodbye(absl::OkStatus());
  });
}

TEST(JobControl, AWorkerWithAnotherJobIsRefusedWithTheServersName) {
  ServedJob job(2);
  const auto first = JoinWith(job.options(0)).value();
  ClientOptions other = job.options(1);
  other.tables.sparse[0].dim = 2;
  const auto refused = JoinWith(other);
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(absl::StrCat("server 0 (", first->endpoint(0), ")")));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("dim"));
}

TEST(JobControl, AWorkerWaitsForTheFirstOneOnlyAsLongAsItMay) {
  ServedJob job(2);
  ClientOptions options = job.options(1);
  options.wait_timeout = std::chrono::milliseconds(300);
  const auto late = JoinWith(options);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("worker 0"));
  options.cancelled = [] { return true; };
  EXPECT_EQ(JoinWith(options).status().code(), absl::StatusCode::kCancelled);
}

TEST(JobControl, AModeOrTableThatCannotBeIsAnErrorBeforeAnyServerIsAsked) {
  ClientOptions options;
  options.servers = {{{"no-such-host.invalid:1"}, {}}};
  options.job.set_mode("often");
  EXPECT_EQ(Connection::Open(options).status(), absl::InvalidArgumentError("mode: there is no 'often'"));
  options.job.set_mode("async");
  options.tables.sparse.emplace_back();
  options.tables.sparse[0].rule.name = "nothing";
  EXPECT_EQ(Connection::Open(options).status().code(), absl::StatusCode::kInvalidArgument);
}

// A worker that goes without a word has given up: nobody waits for it, or takes it for lost.
TEST(JobControl, AWorkerThatIsDestroyedSaysGoodbye) {
  ServedJob job(2);
  const auto first = JoinWith(job.options(0)).value();
  JoinWith(job.options(1)).value().reset();
  const auto gathered = first->Gather("both", "mine");
  EXPECT_TRUE(gathered.ok()) << gathered.status();
}

TEST(JobControl, AnotherProcessResumesWhereThisOneWas) {
  base::TestFolder folder;
  server::ServerOptions serving;
  serving.data_dir = folder.path();
  serving.lives = std::chrono::seconds(0);  // the process before is not killed here
  ServedJob job(1, 2, serving);
  const auto options = [&](uint64_t incarnation) {
    ClientOptions options = job.options(0, incarnation);
    options.job.set_on_worker_loss("await");
    options.job.set_worker_wait(60);
    return options;
  };
  auto first = Connection::Open(options(1)).value();
  EXPECT_TRUE(first->control().server(1).durable());
  ASSERT_TRUE(first->control().Gather("met", "").ok());
  Call call;
  first->data().BeginPass({3, 0, base::StepKind::kTrain}, {.pass = 3}, call);
  for (const uint64_t batch : {0, 1}) {
    const base::GroupedKeys keys({7, 8, 9});
    const float ones[] = {1, 1, 1};
    base::TableGrads table;
    table.keys = keys.view();
    table.grads = {ones, 1, 1};
    const base::DenseGrad dense{0, ones};
    base::StepGrads grads;
    grads.samples = 1;
    grads.pass = 3;
    grads.step = grads.batch = batch;
    grads.tables = {&table, 1};
    grads.dense = {&dense, 1};
    first->data().Push(grads, call);
    first->data().PushDense(grads, call);
  }
  ASSERT_EQ(call.Wait(), absl::OkStatus());
  const auto second = Connection::Open(options(2)).value();
  const ResumePoint& resumed = second->control().resume_point();
  EXPECT_EQ(resumed.predecessor, "here 1");
  EXPECT_EQ(resumed.position.pass, 3u);
  EXPECT_EQ(resumed.position.low, 2u);
  EXPECT_EQ(resumed.step, 2u);
  EXPECT_EQ(resumed.dense.size(), 2u);
  EXPECT_TRUE(resumed.Completed("met"));
  EXPECT_FALSE(resumed.Completed("met", 1));
  EXPECT_FALSE(first->control().Gather("late", "").ok());  // its place is taken
  second->control().Goodbye(absl::OkStatus());
  for (const absl::Status& end : job.Ends()) EXPECT_EQ(end, absl::OkStatus());
}

}  // namespace
}  // namespace regatta::client
