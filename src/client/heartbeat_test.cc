#include "client/heartbeat.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "client/connection.h"
#include "client/testing/served_job.h"

namespace regatta::client {
namespace {

template <typename Condition>
bool ComesTrue(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

TEST(Heartbeat, ItBringsEverybodysProgressToTheFirstWorkerAndAStopToAll) {
  ServedJob job(2);
  const auto first = Connection::Open(job.options(0)).value();
  const auto second = Connection::Open(job.options(1)).value();
  WorkerProgress mine;
  mine.set_samples(10);
  first->control().heartbeat().SetProgress(mine);
  mine.set_samples(20);
  second->control().heartbeat().SetProgress(mine);
  EXPECT_TRUE(ComesTrue([&] {
    const auto all = first->control().heartbeat().progress();
    return all.size() == 2 && all.at(0).samples() == 10 && all.at(1).samples() == 20;
  }));
  EXPECT_TRUE(second->control().heartbeat().progress().empty());
  EXPECT_FALSE(first->control().heartbeat().stop_asked());
  second->control().heartbeat().AskToStop();
  EXPECT_TRUE(second->control().heartbeat().stop_asked());
  EXPECT_TRUE(ComesTrue([&] { return first->control().heartbeat().stop_asked(); }));
  first->control().Goodbye(absl::OkStatus());
  second->control().Goodbye(absl::OkStatus());
}

TEST(Heartbeat, WhatRunsBeforeABeatRunsNoMoreWhenItHasBeenTakenAway) {
  Heartbeat heartbeat({}, {});
  std::atomic<int> runs{0};
  std::atomic<bool> slow{false};
  heartbeat.OnBeat([&] {
    if (runs == 1) slow = true;
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++runs;
    slow = false;
  });
  for (int run = 1; run < 3; ++run) {
    EXPECT_TRUE(ComesTrue([&] {
      heartbeat.AskToStop();  // wakes it
      return runs >= run || slow;
    }));
  }
  heartbeat.OnBeat({});
  EXPECT_FALSE(slow);  // none is under way
  const int before = runs;
  for (int i = 0; i < 10; ++i) {
    heartbeat.AskToStop();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(runs, before);
}

}  // namespace
}  // namespace regatta::client
