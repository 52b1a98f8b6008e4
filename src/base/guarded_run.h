// The outermost frame of a program: what was thrown, as when memory runs out, ends it with a message and exit code 1,
// not with an abort. A file that grows beyond `ulimit -f` is an error of the write.
#pragma once

namespace regatta::base {

// The exit code of `main`, and standard output flushed (ExitCodeOf).
int RunGuarded(int (*main)(int, char**), int argc, char** argv);

}  // namespace regatta::base
