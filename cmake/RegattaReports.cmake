# Where ASan and UBSan watch whole jobs, many of their processes fail on purpose or are killed, and a test that looks at the
# exit codes alone would miss what was found. There every report is a file, reports/<test>.<pid> in the build folder;
# before the first test the folder is emptied, after the last one the test `reports` fails if anything is in it, and
# shows it.
set(regatta_reports_folder "")
if(REGATTA_SANITIZE STREQUAL "address" AND REGATTA_WITH_TORCH)
  set(regatta_reports_folder ${PROJECT_BINARY_DIR}/reports)
endif()
if(regatta_reports_folder AND REGATTA_TESTS)
  enable_testing()
  add_test(NAME no_reports_yet COMMAND sh -c "rm -rf '${regatta_reports_folder}' && mkdir '${regatta_reports_folder}'")
  add_test(NAME reports COMMAND sh -c "! grep -r . '${regatta_reports_folder}'")
  set_tests_properties(no_reports_yet PROPERTIES FIXTURES_SETUP reports)
  set_tests_properties(reports PROPERTIES FIXTURES_CLEANUP reports)
endif()

# regatta_reports(<test>): where there is such a folder, what the sanitizers say of the test's processes goes there. Call
# it after ENVIRONMENT is set. cmake/leaks.txt names what other people's libraries leak.
function(regatta_reports test)
  if(NOT regatta_reports_folder)
    return()
  endif()
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "ASAN_OPTIONS=detect_leaks=1:log_path=${regatta_reports_folder}/${test}"
               "UBSAN_OPTIONS=print_stacktrace=1" "TEST_SLOWNESS=4"
               "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/leaks.txt:print_suppressions=0")
  set_property(TEST ${test} PROPERTY FIXTURES_REQUIRED reports)
  set_property(TEST ${test} PROPERTY TIMEOUT 1800)
endfunction()
