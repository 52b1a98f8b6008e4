// The words of a command line read into the options of a CLI11 app, with the errors that every command gives.
// Thread-safety: plain functions.
#pragma once

#include <string>

#include "base/status.h"

namespace CLI {
class App;
}

namespace regatta::base {

// The app's help text where the words ask for it, otherwise "". INVALID_ARGUMENT begins with the app's name and says
// what to do; words that it does not know are left in app.remaining() where the app allows extras.
absl::StatusOr<std::string> ParseWords(CLI::App& app, int argc, const char* const* argv);

// The error of a word that nobody takes; it names the option that was most likely meant.
absl::Status UnexpectedWord(const CLI::App& app, const std::string& word);
// The same for the first of app.remaining(), if there is one.
absl::Status CheckNothingRemains(const CLI::App& app);

// For Option::check of a number with a fraction, beside CLI::Range, which lets nan through: "" or what is wrong.
std::string NotNan(const std::string& text);

}  // namespace regatta::base
