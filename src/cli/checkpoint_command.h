// `regatta checkpoint ls | verify | dump | get | diff | export | import`: looking into saves and moving weights in and
// out. Reads only what it shows: none of them but import and export needs the memory of the tables.
#pragma once

#include "CLI/CLI.hpp"

namespace regatta::cli {

// Adds the command; its callbacks print and set exit_code (0 done, 1 damaged, different or failed).
void AddCheckpointCommand(CLI::App& app, int& exit_code);

}  // namespace regatta::cli
