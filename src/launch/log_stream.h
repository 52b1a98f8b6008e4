// Shows a growing log file on standard output. The process writes into its file and never waits for a terminal; this
// follows the file and never blocks either: what the terminal does not take now is shown later.
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace regatta::launch {

class LogStream {
 public:
  // Follows nothing until Open.
  explicit LogStream(int out) : out_(out) {}
  ~LogStream();
  LogStream(const LogStream&) = delete;
  LogStream& operator=(const LogStream&) = delete;

  absl::Status Open(const std::string& path);
  enum class State : uint8_t { kCaughtUp, kOutputBusy };
  // Copies what the file has and the output takes.
  State Pump();
  // Pumps to the end of the file; gives up where the output takes nothing for two seconds.
  void Drain();
  int out() const { return out_; }

 private:
  const int out_;
  int file_ = -1;
  bool closed_ = false;  // the reader of our output went away: the log goes on, the show does not
};

}  // namespace regatta::launch
