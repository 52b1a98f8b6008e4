// Spans of time, for chrome://tracing and Perfetto: what each thread did when. A Tracer is passed down; nullptr or one
// that is off costs a load and a branch a span.
//   metrics::TraceSpan span(tracer, "pull");
// Thread-safety: all methods are concurrent. Events of a thread go to a buffer of its own.
// Invariant: names and categories outlive the Tracer (string literals).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace regatta::metrics {

struct TraceEvent {
  const char* name = "";
  int thread = 0;        // from 0, in the order of first use
  int64_t begin_ns = 0;  // since the Tracer was made
  int64_t duration_ns = 0;
  int64_t step = -1;  // -1 = not said
};

class Tracer {
 public:
  enum class State : uint8_t { kOff, kOn };

  explicit Tracer(State state = State::kOn, size_t max_events_per_thread = size_t{1} << 20);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  bool on() const { return on_.load(std::memory_order_relaxed); }
  void Set(State state) { on_.store(state == State::kOn, std::memory_order_relaxed); }

  // Names the calling thread in the picture.
  void NameThread(std::string name);
  int64_t Now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  }
  void Add(const char* name, int64_t begin_ns, int64_t duration_ns, int64_t step = -1);

  // All events so far, by begin.
  std::vector<TraceEvent> Events() const;
  // Events that did not fit.
  uint64_t dropped() const;

  // The Chrome trace format: {"traceEvents": […]}.
  std::string ToJson() const;

 private:
  struct Buffer;
  Buffer& OfThisThread();

  // Constant after construction.
  const std::chrono::steady_clock::time_point start_;
  const size_t max_events_;
  const uint64_t id_;  // tells this Tracer from an earlier one at the same address

  std::atomic<bool> on_;
  mutable base::Mutex mu_;
  std::vector<std::unique_ptr<Buffer>> buffers_ ABSL_GUARDED_BY(mu_);
};

// A span from construction to destruction.
class TraceSpan {
 public:
  TraceSpan(Tracer* tracer, const char* name, int64_t step = -1)
      : tracer_(tracer != nullptr && tracer->on() ? tracer : nullptr), name_(name), step_(step) {
    if (tracer_ != nullptr) begin_ = tracer_->Now();
  }
  ~TraceSpan() {
    if (tracer_ != nullptr) tracer_->Add(name_, begin_, tracer_->Now() - begin_, step_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Tracer* const tracer_;
  const char* const name_;
  const int64_t step_;
  int64_t begin_ = 0;
};

}  // namespace regatta::metrics
