// `regatta data gen | split | check`.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

// Adds the subcommand to `app`. When it runs it sets exit_code: 0, 1 for data and disk, 2 for wrong arguments.
void AddDataCommand(CLI::App& app, int& exit_code);

}  // namespace regatta::cli
