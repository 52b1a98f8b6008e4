// What the main of every program that trains does first.
#pragma once

namespace regatta::worker {

// The kernels of this CPU (which may start the program again: blas.h), one BLAS thread a training thread, log lines to
// stderr as they come, stdout line by line, no proxy between workers and servers. Call it before anything else in main.
void PrepareProcess(char** argv);

}  // namespace regatta::worker
