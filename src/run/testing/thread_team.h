// A team whose workers are threads of one process, for tests. Rounds are remembered, so that a second member of a rank
// can take the place of the first, as a process does that replaces a killed one.
// Thread-safety: every member belongs to one thread; members of different ranks run at the same time.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "run/team.h"

namespace regatta::run {

// What the members share.
class ThreadTeam {
 public:
  explicit ThreadTeam(int size) : size_(size) {}

  class Member : public Team {
   public:
    Member(ThreadTeam& team, int rank, client::ResumePoint resume_point)
        : team_(team), rank_(rank), resume_point_(std::move(resume_point)) {}
    int rank() const override { return rank_; }
    int size() const override { return team_.size_; }
    absl::StatusOr<Payloads> AllGather(const RoundId& round, const absl::StatusOr<std::string>& payload) override {
      return team_.Gather({round.name, round.number}, rank_, payload);
    }
    bool Completed(const RoundId& round) const override { return resume_point_.Completed(round.name, round.number); }
    const client::ResumePoint* resume_point() const override {
      return resume_point_.returns() ? &resume_point_ : nullptr;
    }
    void AskToStop() override {
      base::MutexLock lock(team_.mu_);
      team_.stop_asked_ = true;
    }
    bool stop_asked() const override {
      base::MutexLock lock(team_.mu_);
      return team_.stop_asked_;
    }

   private:
    ThreadTeam& team_;
    const int rank_;
    const client::ResumePoint resume_point_;
  };

  std::unique_ptr<Member> Join(int rank) { return std::make_unique<Member>(*this, rank, client::ResumePoint{}); }
  // In the place of an earlier member, which was at `position`.
  std::unique_ptr<Member> Return(int rank, const base::DataPosition& position) {
    client::ResumePoint resume_point;
    resume_point.predecessor = "a thread";
    resume_point.position = position;
    base::MutexLock lock(mu_);
    for (const auto& [key, round] : rounds_)
      if (round.complete) resume_point.completed.insert(key);
    return std::make_unique<Member>(*this, rank, resume_point);
  }

 private:
  using Key = std::pair<std::string, uint64_t>;
  struct Round {
    Team::Payloads payloads;
    std::map<int, absl::Status> failures;
    bool complete = false;
    int left = 0;  // members that have taken a failed round's answer
  };

  absl::StatusOr<Team::Payloads> Gather(const Key& key, int rank, const absl::StatusOr<std::string>& payload) {
    base::MutexLock lock(mu_);
    Round& round = rounds_[key];
    if (!round.complete) {
      round.payloads[rank] = payload.ok() ? *payload : "";
      if (!payload.ok())
        round.failures[rank] = absl::AbortedError(absl::StrCat("worker ", rank, ": ", payload.status().message()));
      round.complete = round.payloads.size() == static_cast<size_t>(size_);
      changed_.NotifyAll();
    }
    while (!round.complete) changed_.Wait(mu_);
    if (round.failures.empty()) return round.payloads;
    const absl::Status failure = payload.ok() ? round.failures.begin()->second : payload.status();
    if (++round.left == size_) rounds_.erase(key);
    return failure;
  }

  const int size_;
  mutable base::Mutex mu_;
  base::CondVar changed_;
  std::map<Key, Round> rounds_ ABSL_GUARDED_BY(mu_);
  bool stop_asked_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace regatta::run
