#include "base/command_line.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/nearest.h"

namespace regatta::base {

absl::StatusOr<std::string> ParseWords(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(app.get_name(), ": ", error.what(), "; ", app.get_name(), " --help shows the options"));
  }
  return "";
}

absl::Status UnexpectedWord(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
  const std::string nearest = NearestName(word.substr(0, word.find('=')), names);
  return absl::InvalidArgumentError(absl::StrCat(app.get_name(), ": unexpected '", word, "'; ",
                                                 nearest.empty()
                                                     ? absl::StrCat(app.get_name(), " --help shows the options")
                                                     : absl::StrCat("did you mean ", nearest, "?")));
}

absl::Status CheckNothingRemains(const CLI::App& app) {
  for (const std::string& word : app.remaining()) return UnexpectedWord(app, word);
  return absl::OkStatus();
}

std::string NotNan(const std::string& text) {
  double value = 0;
  return absl::SimpleAtod(text, &value) && std::isnan(value) ? absl::StrCat("'", text, "' is no number") : "";
}

}  // namespace regatta::base
