#include "wire/grpc_locks.h"

#include "absl/synchronization/mutex.h"

namespace regatta::wire {

void LockWithoutDeadlockSearch() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

}  // namespace regatta::wire
