#include "launch/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace regatta::launch {
namespace {

// Verbs that one might try here.
struct Refused {
  std::string_view verb;
  const char* why;
};
constexpr Refused kRefused[] = {
    {"infer", "it needs no servers; run regatta infer by itself"},
    {"pserver",
     "servers and workers run the same command, and that is train; regatta pserver is for starting servers by hand"},
};

bool IsFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool IsExecutable(const std::string& path) { return IsFile(path) && access(path.c_str(), X_OK) == 0; }

absl::StatusOr<std::string> Find(const std::string& word, const std::string& search_path) {
  if (absl::StrContains(word, '/')) {
    if (IsExecutable(word)) return word;
    return absl::InvalidArgumentError(
        absl::StrCat("cannot run ", word, ": ", IsFile(word) ? "it is not executable (chmod +x)" : "no such file"));
  }
  for (const absl::string_view folder : absl::StrSplit(search_path, ':')) {
    const std::string path = absl::StrCat(folder.empty() ? "." : folder, "/", word);
    if (IsExecutable(path)) return path;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("cannot run '", word, "': it is not in PATH; want train, a config.yaml, a script.py or a program"));
}

bool IsConfig(const std::string& word) { return absl::EndsWith(word, ".yaml") || absl::EndsWith(word, ".yml"); }

}  // namespace

bool Trains(const std::vector<std::string>& words) { return words.front() == "train" || IsConfig(words.front()); }

std::vector<std::string> TrainWords(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  if (IsConfig(words.front())) all = {"train", "-m"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

absl::StatusOr<std::vector<std::string>> ResolveCommand(const std::vector<std::string>& words, const std::string& self,
                                                        const std::string& search_path) {
  const std::string& first = words.front();
  std::vector<std::string> argv;
  for (const Refused& refused : kRefused)
    if (first == refused.verb)
      return absl::InvalidArgumentError(absl::StrCat("cannot launch ", first, ": ", refused.why));
  if (Trains(words)) {
    argv = TrainWords(words);
    argv.insert(argv.begin(), self);
    return argv;
  }
  if (absl::EndsWith(first, ".py")) {
    if (!IsFile(first)) return absl::InvalidArgumentError(absl::StrCat("cannot run ", first, ": no such file"));
    ASSIGN_OR_RETURN(std::string python, Find("python3", search_path));
    argv = {std::move(python), "-u"};
  } else {
    ASSIGN_OR_RETURN(std::string program, Find(first, search_path));
    argv = {std::move(program)};
    argv.insert(argv.end(), words.begin() + 1, words.end());
    return argv;
  }
  argv.insert(argv.end(), words.begin(), words.end());
  return argv;
}

}  // namespace regatta::launch
