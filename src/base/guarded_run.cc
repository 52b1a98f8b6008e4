#include "base/guarded_run.h"

#include <cstdio>
#include <exception>
#include <new>

#include "base/printable.h"
#include "base/standard_output.h"

namespace regatta::base {
namespace {

constexpr int kThrown = 1;

}  // namespace

int RunGuarded(int (*main)(int, char**), int argc, char** argv) {
  int code = kThrown;
  try {
    code = main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("regatta: error: there is not enough memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regatta: error: %s\n", PrintableLines(error.what()).c_str());
  }
  return ExitCodeOf(code);
}

}  // namespace regatta::base
