// gRPC's locks are abseil's. Debian builds abseil with its search for deadlocks: whoever takes a lock then takes one
// more that all threads of the process share, and a lane's threads wait for each other at it.
// Thread-safety: concurrent.
#pragma once

namespace regatta::wire {

// From now on no lock of the process is searched for deadlocks.
void LockWithoutDeadlockSearch();

}  // namespace regatta::wire
