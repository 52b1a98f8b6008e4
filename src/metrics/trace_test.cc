#include "metrics/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

namespace regatta::metrics {
namespace {

TEST(Trace, SpansNestAndCarryTheirStep) {
  Tracer tracer;
  {
    TraceSpan outer(&tracer, "step", 7);
    TraceSpan inner(&tracer, "pull", 7);
  }
  const std::vector<TraceEvent> events = tracer.Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_STREQ(events[0].name, "step");
  EXPECT_STREQ(events[1].name, "pull");
  EXPECT_EQ(events[1].step, 7);
  EXPECT_GE(events[1].begin_ns, events[0].begin_ns);
  EXPECT_LE(events[1].begin_ns + events[1].duration_ns, events[0].begin_ns + events[0].duration_ns);
}

TEST(Trace, OffRecordsNothing) {
  Tracer tracer(Tracer::State::kOff);
  { TraceSpan span(&tracer, "pull"); }
  { TraceSpan span(nullptr, "pull"); }
  EXPECT_TRUE(tracer.Events().empty());
  tracer.Set(Tracer::State::kOn);
  { TraceSpan span(&tracer, "pull"); }
  EXPECT_EQ(tracer.Events().size(), 1u);
}

TEST(Trace, ThreadsHaveRowsOfTheirOwn) {
  Tracer tracer;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) TraceSpan span(&tracer, "work", i);
    });
  }
  while (tracer.Events().empty()) std::this_thread::yield();  // reading while they write
  for (std::thread& thread : threads) thread.join();
  std::set<int> rows;
  for (const TraceEvent& event : tracer.Events()) rows.insert(event.thread);
  EXPECT_EQ(tracer.Events().size(), 4000u);
  EXPECT_EQ(rows.size(), 4u);
}

TEST(Trace, AFullBufferDropsAndCounts) {
  Tracer tracer(Tracer::State::kOn, 3);
  for (int i = 0; i < 5; ++i) TraceSpan span(&tracer, "work");
  EXPECT_EQ(tracer.Events().size(), 3u);
  EXPECT_EQ(tracer.dropped(), 2u);
}

TEST(Trace, TwoTracersDoNotMix) {
  Tracer a, b;
  for (int i = 0; i < 3; ++i) {
    TraceSpan first(&a, "a");
    TraceSpan second(&b, "b");
  }
  ASSERT_EQ(a.Events().size(), 3u);
  ASSERT_EQ(b.Events().size(), 3u);
  for (const TraceEvent& event : a.Events()) {
    EXPECT_STREQ(event.name, "a");
    EXPECT_EQ(event.thread, 0);
  }
}

TEST(Trace, WritesWhatChromeReads) {
  Tracer tracer;
  tracer.NameThread("trainer \"0\"");
  tracer.Add("pull", 1500, 2500, 3);
  const auto json = nlohmann::json::parse(tracer.ToJson());
  ASSERT_EQ(json["traceEvents"].size(), 2u);
  EXPECT_EQ(json["traceEvents"][0]["args"]["name"], "trainer \"0\"");
  const auto& span = json["traceEvents"][1];
  EXPECT_EQ(span["name"], "pull");
  EXPECT_EQ(span["ph"], "X");
  EXPECT_EQ(span["ts"], 1.5);
  EXPECT_EQ(span["dur"], 2.5);
  EXPECT_EQ(span["args"]["step"], 3);
  EXPECT_EQ(span["tid"], json["traceEvents"][0]["tid"]);
}

}  // namespace
}  // namespace regatta::metrics
