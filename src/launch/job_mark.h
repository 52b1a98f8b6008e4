// A mark in the environment of every process of a job, its grandchildren included, by which whatever is left of the job
// is found: also what has moved to another process group or session. Processes that hold credentials show their
// environment to nobody (cluster/core_dumps.h): they are found by their process group.
// Thread-safety: plain values; End signals processes and belongs to the owner of the job.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace regatta::launch {

class JobMark {
 public:
  // A mark that no other job has.
  JobMark();

  // "REGATTA_LAUNCH=…", to put into the environment of the job's processes. `outer` is the launcher's own value: a
  // launcher inside a job of another launcher belongs to that job too.
  std::string Variable(const char* outer) const;
  static constexpr char kName[] = "REGATTA_LAUNCH";

  // The group that a process of the job leads.
  void AddGroup(pid_t leader) { groups_.insert(leader); }

  // Living processes that carry the mark; of other users' processes nothing is known.
  std::vector<pid_t> Find() const;
  // Asks them to end (SIGTERM), waits, and kills what is still there, until nothing is found. The number it found.
  int End(std::chrono::milliseconds timeout) const;

 private:
  std::string id_;
  std::set<pid_t> groups_;
};

}  // namespace regatta::launch
