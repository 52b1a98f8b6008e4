// Spans of time by thread, written as Chrome/Perfetto JSON.
// Thread-safety: spans may begin and end in any thread; Write is called when the traced threads are done.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace regatta::metrics {

class Tracer {
 public:
  Tracer() : start_(std::chrono::steady_clock::now()) {}
  // `name` must live as long as the tracer: a string literal.
  void Add(const char* name, std::chrono::steady_clock::time_point begin, std::chrono::steady_clock::time_point end);
  absl::Status Write(const std::string& path) const;

  struct Span {
    const char* name;
    int64_t thread;
    double begin_us;
    double duration_us;
  };
  std::vector<Span> Spans() const;

 private:
  const std::chrono::steady_clock::time_point start_;
  mutable base::Mutex mu_;
  std::deque<Span> spans_ ABSL_GUARDED_BY(mu_);
};

// Traces its own lifetime; costs nothing but a test where `tracer` is null.
class TraceSpan {
 public:
  TraceSpan(Tracer* tracer, const char* name) : tracer_(tracer), name_(name) {
    if (tracer_ != nullptr) begin_ = std::chrono::steady_clock::now();
  }
  ~TraceSpan() {
    if (tracer_ != nullptr) tracer_->Add(name_, begin_, std::chrono::steady_clock::now());
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Tracer* const tracer_;
  const char* const name_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace regatta::metrics
