// What malloc does with memory that is freed. By default it gives large blocks back to the system at once, and each new
// frame or tensor of half a megabyte pays for its pages again. If all is kept, every arena keeps what its threads have
// ever used: a server that grows gives back what is free.
// Thread-safety: KeepFreedMemory is called once, before threads start; a FreedMemory belongs to one thread.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace regatta::base {

inline constexpr int kKeptFreedBytes = 2000 << 20;

inline void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, kKeptFreedBytes);
}

// Fewer arenas than malloc makes by itself: each keeps its own freed memory.
inline void LimitArenas() {
  mallopt(M_ARENA_MAX, std::max(4, 2 * static_cast<int>(std::thread::hardware_concurrency())));
}

// After KeepFreedMemory: keeps freed memory while the process does not grow.
class FreedMemory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kGrown = uint64_t{8} << 20;  // or a sixteenth of what the process has
  static constexpr std::chrono::seconds kWorkingSet{10};

  // If the process has grown by kGrown since it last did, gives freed memory back, and for a moment also what is freed
  // from now on. Memory that the process takes again within kWorkingSet is what it works with: until then only growth
  // beyond what it had counts. While malloc has little that is free, nothing is given back. Neither holds for kNothing:
  // the process is flooded, and what a flood has freed is not needed again. Called often; what it does
  // takes at most a fiftieth of the time. Returns whether it did.
  enum class Keeps : uint8_t { kWorkingSet, kNothing };
  bool ReturnIfGrown(uint64_t resident, Clock::time_point now = Clock::now(), Keeps keeps = Keeps::kWorkingSet);
  static constexpr uint64_t kLittle = uint64_t{32} << 20;

 private:
  uint64_t least_ = ~uint64_t{0};  // resident bytes since then
  uint64_t had_ = 0;               // resident bytes when it last gave memory back
  Clock::time_point had_until_;    // of the working set
  Clock::time_point next_, tight_until_;
  bool tight_ = false;
};

}  // namespace regatta::base
