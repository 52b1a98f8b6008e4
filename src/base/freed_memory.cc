#include "base/freed_memory.h"

#include <algorithm>

#include "base/resident_memory.h"

namespace regatta::base {
namespace {

constexpr std::chrono::milliseconds kLeastRest(20), kTight(500);
constexpr int kTightBytes = 1 << 20;
constexpr int kRestOfCost = 50;

}  // namespace

bool FreedMemory::ReturnIfGrown(uint64_t resident, Clock::time_point now, Keeps keeps) {
  if (tight_ && now >= tight_until_) {
    mallopt(M_TRIM_THRESHOLD, kKeptFreedBytes);
    tight_ = false;
  }
  least_ = std::min(least_, resident);
  const bool flooded = keeps == Keeps::kNothing;
  const uint64_t from = now < had_until_ && !flooded ? std::max(least_, had_) : least_;
  if (resident < from + std::max(kGrown, from / 16) || now < next_) return false;
  const auto begin = Clock::now();
  const bool little = !flooded && mallinfo2().fordblks < kLittle;
  had_ = resident;
  had_until_ = now + kWorkingSet;
  if (little) {  // it has grown by what it uses
    next_ = now + std::max<Clock::duration>(kLeastRest, kRestOfCost * (Clock::now() - begin));
    return false;
  }
  // malloc_trim leaves the end of other arenas than the first alone; the next free in them gives it back.
  if (!tight_) mallopt(M_TRIM_THRESHOLD, kTightBytes);
  tight_ = true;
  tight_until_ = now + kTight;
  malloc_trim(0);
  least_ = ResidentBytes();
  next_ = now + std::max<Clock::duration>(kLeastRest, kRestOfCost * (Clock::now() - begin));
  return true;
}

}  // namespace regatta::base
