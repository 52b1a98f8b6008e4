// A folder of its own for a test, removed afterwards.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "base/file.h"
#include "gtest/gtest.h"

namespace regatta::base {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = testing::TempDir() + "/checkpoint.XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Every file below a folder with its bytes.
inline std::map<std::string, std::string> FilesIn(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry.path(), folder).string()] = base::ReadFile(entry.path().string()).value();
  return files;
}

}  // namespace regatta::base
