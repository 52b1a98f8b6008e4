#include "cluster/core_dumps.h"

#include <sys/prctl.h>

namespace regatta::cluster {

void ForbidCoreDumps() { prctl(PR_SET_DUMPABLE, 0); }

}  // namespace regatta::cluster
