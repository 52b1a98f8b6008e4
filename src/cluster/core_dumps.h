// A process that holds secrets leaves no core dump, which would hold them too, and no debugger of the same user looks
// into it. REGATTA_CORE_DUMPS=1 leaves both possible (environment.h).
// Thread-safety: ForbidCoreDumps is for the whole process and cannot fail.
#pragma once

#include <cstdint>

namespace regatta::cluster {

enum class CoreDumps : uint8_t { kForbid, kAllow };

void ForbidCoreDumps();

}  // namespace regatta::cluster
