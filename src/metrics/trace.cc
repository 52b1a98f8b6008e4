#include "metrics/trace.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/yaml.h"

namespace regatta::metrics {

struct Tracer::Buffer {
  mutable base::Mutex mu;  // taken by the owner for each event, by readers now and then
  std::vector<TraceEvent> events ABSL_GUARDED_BY(mu);
  std::string name ABSL_GUARDED_BY(mu);
  uint64_t dropped ABSL_GUARDED_BY(mu) = 0;
  // Constant once in buffers_.
  int thread = 0;
  std::thread::id owner;
};

namespace {

uint64_t NextId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// The buffer that this thread used last, and whose it is.
struct LastUsed {
  uint64_t tracer = 0;
  void* buffer = nullptr;
};
thread_local LastUsed last_used;

}  // namespace

Tracer::Tracer(State state, size_t max_events_per_thread)
    : start_(std::chrono::steady_clock::now()),
      max_events_(max_events_per_thread),
      id_(NextId()),
      on_(state == State::kOn) {}

Tracer::~Tracer() = default;

Tracer::Buffer& Tracer::OfThisThread() {
  if (last_used.tracer == id_) return *static_cast<Buffer*>(last_used.buffer);
  base::MutexLock lock(mu_);
  for (const auto& buffer : buffers_) {
    if (buffer->owner != std::this_thread::get_id()) continue;
    last_used = {id_, buffer.get()};
    return *buffer;
  }
  auto buffer = std::make_unique<Buffer>();
  buffer->thread = static_cast<int>(buffers_.size());
  buffer->owner = std::this_thread::get_id();
  last_used = {id_, buffer.get()};
  buffers_.push_back(std::move(buffer));
  return *buffers_.back();
}

void Tracer::NameThread(std::string name) {
  Buffer& buffer = OfThisThread();
  base::MutexLock lock(buffer.mu);
  buffer.name = std::move(name);
}

void Tracer::Add(const char* name, int64_t begin_ns, int64_t duration_ns, int64_t step) {
  Buffer& buffer = OfThisThread();
  base::MutexLock lock(buffer.mu);
  if (buffer.events.size() >= max_events_) {
    ++buffer.dropped;
    return;
  }
  buffer.events.push_back({name, buffer.thread, begin_ns, duration_ns, step});
}

std::vector<TraceEvent> Tracer::Events() const {
  std::vector<TraceEvent> all;
  base::MutexLock lock(mu_);
  for (const auto& buffer : buffers_) {
    base::MutexLock buffer_lock(buffer->mu);
    all.insert(all.end(), buffer->events.begin(), buffer->events.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const TraceEvent& a, const TraceEvent& b) { return a.begin_ns < b.begin_ns; });
  return all;
}

uint64_t Tracer::dropped() const {
  uint64_t n = 0;
  base::MutexLock lock(mu_);
  for (const auto& buffer : buffers_) {
    base::MutexLock buffer_lock(buffer->mu);
    n += buffer->dropped;
  }
  return n;
}

std::string Tracer::ToJson() const {
  const int pid = static_cast<int>(getpid());
  std::string out = "{\"traceEvents\":[";
  const auto separate = [&out] { out += out.back() == '[' ? "\n" : ",\n"; };
  {
    base::MutexLock lock(mu_);
    for (const auto& buffer : buffers_) {
      base::MutexLock buffer_lock(buffer->mu);
      if (buffer->name.empty()) continue;
      separate();
      absl::StrAppendFormat(&out, R"({"name":"thread_name","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}})", pid,
                            buffer->thread, base::QuoteJson(buffer->name));
    }
  }
  for (const TraceEvent& event : Events()) {
    separate();
    absl::StrAppendFormat(&out, R"({"name":%s,"ph":"X","pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f)",
                          base::QuoteJson(event.name), pid, event.thread, event.begin_ns * 1e-3,
                          event.duration_ns * 1e-3);
    if (event.step >= 0) absl::StrAppend(&out, ",\"args\":{\"step\":", event.step, "}");
    out += "}";
  }
  absl::StrAppend(&out, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped\":", dropped(), "}}\n");
  return out;
}

}  // namespace regatta::metrics
