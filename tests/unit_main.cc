// main() of a folder's unit tests: runs the tests of one source file, or all.
//   server_tests [lease_test] [--no_threads] [--gtest_…]
// With --no_threads it fails where a test has started a thread: its file lacks the ctest label `threads`, by which
// TSan's tests are chosen. A --gtest_filter goes before the file's name.
#include <gtest/gtest.h>
#include <sys/single_threaded.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

// The filter of all tests in <name>.cc; "" if there are none.
std::string FilterOf(std::string_view name) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      std::string_view file = test.file();
      file.remove_prefix(file.rfind('/') + 1);
      if (file != std::string(name) + ".cc") continue;
      filter += std::string(filter.empty() ? "" : ":") + suite.name() + "." + test.name();
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);  // takes the --gtest flags out
  std::string_view name;
  bool no_threads = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--no_threads") {
      no_threads = true;
    } else if (name.empty() && !arg.empty() && arg[0] != '-') {
      name = arg;
    } else {
      std::fprintf(stderr, "unknown argument '%s'; usage: %s [file_test] [--no_threads] [--gtest_…]\n", argv[i],
                   argv[0]);
      return 2;
    }
  }
  const bool chosen = testing::GTEST_FLAG(filter) != "*";
  if (!name.empty() && !chosen) {
    const std::string filter = FilterOf(name);
    if (filter.empty()) {
      std::fprintf(stderr, "no tests of %s.cc in this program\n", std::string(name).c_str());
      return 1;
    }
    testing::GTEST_FLAG(filter) = filter;
  }
  const int failed = RUN_ALL_TESTS();
  if (failed == 0 && no_threads && __libc_single_threaded == 0) {
    std::fprintf(stderr,
                 "%s starts threads: name it after THREADS in its folder's CMakeLists.txt, so that TSan sees it\n",
                 std::string(name).c_str());
    return 1;
  }
  return failed;
}
