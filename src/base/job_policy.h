// What all workers and servers of a job agree on besides its mode: what an acknowledgement means, and what happens when
// a worker dies. A choice that a configuration leaves open ("auto") is an empty std::optional.
// Thread-safety: plain values.
#pragma once

#include <cstdint>

#include "base/named.h"

namespace regatta::base {

// What a server has done when it acknowledges a push.
enum class Ack : uint8_t {
  kMemory,  // applied it
  kLogged,  // and written it to its log: it survives the end of the process
  kSynced,  // and forced the log to the disk: it survives a loss of power
};
inline constexpr Named<Ack> kAcks[] = {{"memory", Ack::kMemory}, {"logged", Ack::kLogged}, {"synced", Ack::kSynced}};
static_assert(InOrder(kAcks));
constexpr const char* Name(Ack ack) { return NameIn(kAcks, ack); }

// What a job does when a worker dies.
enum class LossPolicy : uint8_t {
  kFail,    // it ends with an error that names the worker
  kShrink,  // the others go on without it
  kAwait,   // the others wait for a process that replaces it
};
inline constexpr Named<LossPolicy> kLossPolicies[] = {
    {"fail", LossPolicy::kFail}, {"shrink", LossPolicy::kShrink}, {"await", LossPolicy::kAwait}};
static_assert(InOrder(kLossPolicies));
constexpr const char* Name(LossPolicy policy) { return NameIn(kLossPolicies, policy); }

}  // namespace regatta::base
