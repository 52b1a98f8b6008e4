#include "base/guarded_run.h"

#include <csignal>
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
  signal(SIGXFSZ, SIG_IGN);
  int code = kThrown;
  try {
    code = main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("regatta: error: there is not enough memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regatta: error: %s\n", PrintableLines(error.what()).c_str());
  } catch (...) {
    std::fputs("regatta: error: something was thrown that is no std::exception\n", stderr);
  }
  return ExitCodeOf(code);
}

}  // namespace regatta::base
