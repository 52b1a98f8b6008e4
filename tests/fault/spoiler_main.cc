// Spoils a push log and a save, again and again, one bad thing to one or two files at a time, and opens them: whatever
// was done must be found, or do no harm. A log that opens must give every record back, a save must be what it was.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "base/file.h"
#include "checkpoint/checkpoint_reader.h"
#include "log/push_log.h"

namespace regatta::fault {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;  // bytes by path
using Rng = std::mt19937_64;

struct Args {
  uint64_t cycles = 1000;
  uint64_t seed = 1;
  std::string save;
};

size_t Below(Rng& rng, size_t n) { return n == 0 ? 0 : rng() % n; }

absl::StatusOr<Files> ReadFiles(const std::string& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    ASSIGN_OR_RETURN(files[entry.path().string()], base::ReadFile(entry.path().string()));
  }
  return files;
}

absl::Status Put(const std::string& path, const std::string& bytes) {
  FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return base::ErrnoStatus("cannot open", path);
  const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !whole) return base::ErrnoStatus("cannot write", path);
  return absl::OkStatus();
}

// Makes the folder what `files` say.
absl::Status Restore(const std::string& folder, const Files& files) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && !files.contains(entry.path().string())) fs::remove(entry.path());
  for (const auto& [path, bytes] : files) {
    const auto now = base::ReadFile(path);
    if (!now.ok() || *now != bytes) RETURN_IF_ERROR(Put(path, bytes));
  }
  return absl::OkStatus();
}

// Does it, and says what.
absl::StatusOr<std::string> Spoil(Rng& rng, const Files& files) {
  auto victim = files.begin();
  std::advance(victim, static_cast<ptrdiff_t>(Below(rng, files.size())));
  std::string bytes = victim->second;
  const size_t at = Below(rng, bytes.size());
  const auto done = [&](const char* how) {
    return absl::StrCat(how, " at byte ", at, " of ", bytes.size(), ", ", victim->first);
  };
  switch (Below(rng, 8)) {
    case 0:
      RETURN_IF_ERROR(Put(victim->first, bytes.substr(0, at)));
      return done("truncated");
    case 1:
      bytes.erase(at, 1 + Below(rng, 64));
      RETURN_IF_ERROR(Put(victim->first, bytes));
      return done("cut out");
    case 2:
      bytes.insert(at, std::string(1 + Below(rng, 64), static_cast<char>(rng())));
      RETURN_IF_ERROR(Put(victim->first, bytes));
      return done("put in");
    case 3:
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at), std::min<size_t>(4096, bytes.size() - at), '\0');
      RETURN_IF_ERROR(Put(victim->first, bytes));
      return done("zeros");
    case 4: {
      auto other = files.begin();
      std::advance(other, static_cast<ptrdiff_t>(Below(rng, files.size())));
      RETURN_IF_ERROR(Put(victim->first, other->second));
      RETURN_IF_ERROR(Put(other->first, victim->second));
      return absl::StrCat("swapped ", victim->first, " and ", other->first);
    }
    case 5:
      fs::remove(victim->first);
      return done("removed");
    default:
      if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(rng, 8)));
      RETURN_IF_ERROR(Put(victim->first, bytes));
      return done("flipped");
  }
}

struct Tally {
  uint64_t found = 0, harmless = 0, missed = 0;
};

using Records = std::vector<std::string>;

absl::StatusOr<std::unique_ptr<log::PushLog>> OpenLog(const std::string& folder, Records& records) {
  log::LogOptions options;
  options.folder = folder;
  options.name = "lane";
  options.segment_bytes = 700;
  return log::PushLog::Open(options, 0, [&](const log::LogRecord& record) {
    records.emplace_back(record.body);
    return absl::OkStatus();
  });
}

absl::StatusOr<Records> FillLog(Rng& rng, const std::string& folder) {
  Records records, none;
  ASSIGN_OR_RETURN(const auto log, OpenLog(folder, none));
  for (size_t i = 0; i < 20 + Below(rng, 20); ++i) {
    records.emplace_back(Below(rng, 200), static_cast<char>(rng()));
    const std::string_view body = records.back();
    RETURN_IF_ERROR(log->Append({&body, 1}).status());
  }
  return records;
}

absl::Status SpoilLogs(const Args& args, const std::string& folder, Tally& tally) {
  Rng rng(args.seed);
  Records records;
  Files files;
  for (uint64_t cycle = 0; cycle < args.cycles; ++cycle) {
    if (cycle % 500 == 0) {
      RETURN_IF_ERROR(base::RemoveTree(folder));
      ASSIGN_OR_RETURN(records, FillLog(rng, folder));
      ASSIGN_OR_RETURN(files, ReadFiles(folder));
    }
    ASSIGN_OR_RETURN(const std::string what, Spoil(rng, files));
    Records read;
    const auto opened = OpenLog(folder, read);
    if (!opened.ok()) {
      ++tally.found;
    } else if (read == records) {
      ++tally.harmless;
    } else {
      ++tally.missed;
      std::printf("missed: %s: %zu of %zu records\n", what.c_str(), read.size(), records.size());
    }
    RETURN_IF_ERROR(Restore(folder, files));
  }
  return absl::OkStatus();
}

absl::Status SpoilSaves(const Args& args, const std::string& folder, Tally& tally) {
  Rng rng(args.seed + 1);
  fs::copy(args.save, folder, fs::copy_options::recursive);
  ASSIGN_OR_RETURN(const Files files, ReadFiles(folder));
  for (uint64_t cycle = 0; cycle < args.cycles; ++cycle) {
    ASSIGN_OR_RETURN(const std::string what, Spoil(rng, files));
    const auto reader = checkpoint::CheckpointReader::Open(folder);
    if (!reader.ok() || !reader->Verify().empty()) {
      ++tally.found;
    } else if (*ReadFiles(folder) == files) {
      ++tally.harmless;  // a swap with itself, zeros over zeros
    } else {
      ++tally.missed;
      std::printf("missed: %s\n", what.c_str());
    }
    RETURN_IF_ERROR(Restore(folder, files));
  }
  return absl::OkStatus();
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "spoiler: error: %s\n", std::string(status.message()).c_str());
  return code;
}

int Main(int argc, char** argv) {
  Args args;
  CLI::App app{"Spoils logs and saves, and looks whether that is found.", "spoiler"};
  app.footer("Its folder is below TMPDIR. Exit codes: 0 all was found or harmless, 1 not, 2 wrong arguments.");
  app.add_option("--cycles", args.cycles, "of each")->capture_default_str();
  app.add_option("--seed", args.seed)->capture_default_str();
  app.add_option("--save", args.save, "a save to spoil copies of; logs otherwise");
  const auto help = base::ParseWords(app, argc, argv);
  if (!help.ok()) return Fail(help.status(), 2);
  if (!help->empty()) {
    std::fputs(help->c_str(), stdout);
    return 0;
  }
  std::string pattern = (fs::temp_directory_path() / "regatta_spoiler.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return Fail(base::ErrnoStatus("cannot make", pattern), 1);
  Tally tally;
  const absl::Status status =
      args.save.empty() ? SpoilLogs(args, pattern + "/log", tally) : SpoilSaves(args, pattern + "/save", tally);
  fs::remove_all(pattern);
  if (!status.ok()) return Fail(status, 1);
  std::printf("found %lu harmless %lu missed %lu\n", tally.found, tally.harmless, tally.missed);
  return tally.missed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace regatta::fault

int main(int argc, char** argv) { return regatta::fault::Main(argc, argv); }
