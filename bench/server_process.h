// A server as a process of its own, on the cores that this one is pinned to.
#pragma once

#include <glog/logging.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/port_lease.h"

namespace regatta::bench {

class ServerProcess {
 public:
  // A parameter server; `more` are further flags.
  explicit ServerProcess(int workers, const std::vector<std::string>& more = {})
      : ServerProcess((Here().parent_path().parent_path() / "bin" / "regatta-pserver").string(), [=](int port) {
          std::vector<std::string> words = {"--port=" + std::to_string(port), "--ports_num=1",
                                            "--ports_num_for_sparse=0",
                                            "--num_gradient_servers=" + std::to_string(workers)};
          words.insert(words.end(), more.begin(), more.end());
          return words;
        }) {}
  // Any other program that listens on the port that its arguments name.
  ServerProcess(const std::string& program, const std::function<std::vector<std::string>(int port)>& arguments) {
    auto lease = launch::PortLease::Take();
    CHECK(lease.ok()) << lease.status();
    const int port = lease_.emplace(*std::move(lease)).port();
    endpoint_ = "127.0.0.1:" + std::to_string(port);
    std::vector<std::string> words = arguments(port);
    words.insert(words.begin(), program);
    pid_ = fork();
    CHECK_GE(pid_, 0);
    if (pid_ != 0) return;
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // this process may be ended without a word
    setenv("GLOG_minloglevel", "1", 1);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  // This program's file.
  static std::filesystem::path Here() { return std::filesystem::read_symlink("/proc/self/exe"); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }

  const std::string& endpoint() const { return endpoint_; }

  // What it has used so far.
  double CpuSeconds() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string line;
    std::getline(stat, line);
    long user = 0, system = 0;
    // The fields after the name in parentheses: state is the third of the line, user and system time 14 and 15.
    std::sscanf(line.c_str() + line.rfind(')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
                &system);
    return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

 private:
  std::optional<launch::PortLease> lease_;
  std::string endpoint_;
  pid_t pid_ = -1;
};

}  // namespace regatta::bench
