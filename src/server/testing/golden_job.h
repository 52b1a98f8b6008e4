// The job behind tests/data/data_dir_v*: frames that exercise every verb that changes tables, sent down the lanes of
// one server, and its tables as text. The program tests/golden writes such folders, server/golden_data_dir_test.cc
// reads them. Thread-safety: belongs to one thread.
#pragma once

#include <glog/logging.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/grouped_keys.h"
#include "checkpoint/schema_json.h"
#include "server/hosted_job.h"
#include "server/lane_session.h"
#include "wire/frame.h"

namespace regatta::server {

inline constexpr int kGoldenLanes = 2;
inline constexpr int kGoldenDense = 3;
inline constexpr int kGoldenDims[] = {2, 3};

// What the first worker brought.
inline ps::ConnectRequest GoldenRequest(base::Mode mode) {
  table::ModelConfig tables;
  const char* const rules[] = {"adagrad", "adam"};
  for (int i = 0; i < 2; ++i) {
    table::SparseTableConfig table;
    table.name = absl::StrCat("t", i);
    table.dim = kGoldenDims[i];
    table.rule.name = rules[i];
    tables.sparse.push_back(table);
  }
  tables.dense.rule.name = "adam";
  tables.dense.parameters = {{"w", {kGoldenDense}, {}}};
  ps::ConnectRequest request;
  request.set_protocol(wire::kProtocolVersion);
  request.set_job_id(77);
  ps::JobSpec& job = *request.mutable_job();
  job.set_mode(Name(mode));
  job.set_workers(2);
  job.set_servers(1);
  job.set_sparse_lanes(kGoldenLanes);
  job.set_tables_json(checkpoint::ToJson(tables).dump());
  job.set_nan_policy("skip");
  job.set_on_worker_loss("await");
  job.set_worker_wait(600);
  job.set_ack("logged");
  return request;
}

// Every row with its state and the dense block, in hexadecimal, sorted.
inline std::string GoldenText(HostedJob& job) {
  std::vector<std::string> lines;
  const auto add = [&](std::string line, std::span<const float> values) {
    for (const float value : values) absl::StrAppendFormat(&line, " %08x", std::bit_cast<uint32_t>(value));
    lines.push_back(line + "\n");
  };
  for (int table = 0; table < job.sparse_tables(); ++table)
    for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard)
      job.sparse(table).ForEachRow(shard, [&](base::Key key, std::span<const float> row) {
        add(absl::StrFormat("t%d %016x", table, key), row);
      });
  add("dense", job.dense().Values());
  for (int i = 0; i < job.dense().state_count(); ++i) add(absl::StrCat("dense state ", i), job.dense().State(i));
  lines.push_back(absl::StrCat("dense updates ", job.dense().updates(), "\n"));
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

// Whether the workers' pushes bring learning rates.
enum class Rates : uint8_t { kNone, kOwn };

// What the names of folders and files with rates end in.
inline const char* SuffixOf(Rates rates) { return rates == Rates::kOwn ? "_rates" : ""; }

// The two workers' ends of the lanes.
class GoldenWorkers {
 public:
  // `first_id` is above those of an earlier use on the same job.
  GoldenWorkers(HostedJob& job, uint64_t first_id, Rates rates = Rates::kNone)
      : job_(job), next_id_(first_id), rates_(rates) {}

  static Identity Worker(int rank) { return {rank, static_cast<uint64_t>(7 + rank), "golden"}; }
  static std::vector<base::Key> KeysOf(int rank, uint64_t step) {
    std::vector<base::Key> keys;
    for (uint64_t i = 0; i < 12; ++i)
      keys.push_back(i % 3 == 0 ? i : i * 1000 + step % 5 * 10 + static_cast<uint64_t>(rank));
    return keys;
  }

  // PUSH or ADD of a step, in as many frames a lane; the last one stays out where it is asked to.
  enum class Whole { kYes, kWithoutLast };
  void Push(int rank, uint64_t pass, uint64_t step, int frames = 1, Whole whole = Whole::kYes,
            ps::Verb verb = ps::PUSH) {
    const base::GroupedKeys keys(KeysOf(rank, step));
    for (int lane = 0; lane < kGoldenLanes; ++lane) {
      const wire::Range shards = job_.spec().lanes.Shards(0, lane);
      const base::TableKeys view = keys.view();
      const uint32_t begin = view.shard_begin[static_cast<size_t>(shards.begin)];
      const uint32_t end = view.shard_begin[static_cast<size_t>(shards.end)];
      for (int frame = 0; frame < frames; ++frame) {
        if (frame + 1 == frames && whole == Whole::kWithoutLast) break;
        const uint32_t from = begin + (end - begin) * static_cast<uint32_t>(frame) / static_cast<uint32_t>(frames);
        const uint32_t to = begin + (end - begin) * static_cast<uint32_t>(frame + 1) / static_cast<uint32_t>(frames);
        ps::FrameHeader header = Header(verb, pass, step);
        header.set_more(frame + 1 < frames);
        header.set_part(frames > 1 ? static_cast<uint32_t>(frame + 1) : 0);
        std::string body;
        for (int table = 0; table < 2; ++table) {
          ps::Section& section = *header.add_sections();
          section.set_table(static_cast<uint32_t>(table));
          section.set_keys(to - from);
          section.set_width(static_cast<uint32_t>(kGoldenDims[table]));
          for (uint32_t k = from; k < to; ++k) Put(body, view.keys[k]);
          for (uint32_t k = from; k < to; ++k)
            for (int i = 0; i < kGoldenDims[table]; ++i) Put(body, Gradient(rank, step, k, i));
          const std::optional<float> rate = verb == ps::PUSH ? RateOf(table, step) : std::nullopt;
          section.set_rate(rate.has_value());
          if (rate.has_value()) Put(body, *rate);
        }
        Ask(rank, lane, header, body);
      }
    }
  }
  void PushDense(int rank, uint64_t pass, uint64_t step, ps::Verb verb = ps::PUSH_DENSE) {
    std::string body;
    for (int i = 0; i < kGoldenDense; ++i) Put(body, Gradient(rank, step, 99, i));
    ps::FrameHeader header = Header(verb, pass, step);
    const std::optional<float> rate = verb == ps::PUSH_DENSE ? RateOf(2, step) : std::nullopt;
    header.set_rate(rate.has_value());
    if (rate.has_value()) Put(body, *rate);
    Ask(rank, kGoldenLanes, header, body);
  }
  // What geo's workers send at the end of a round.
  void Combine(int rank, uint64_t pass, uint64_t step) {
    Push(rank, pass, step, 1, Whole::kYes, ps::COMBINE);
    PushDense(rank, pass, step, ps::COMBINE_DENSE);
  }
  void Step(int rank, uint64_t pass, uint64_t step, int frames = 1) {
    Push(rank, pass, step, frames);
    PushDense(rank, pass, step);
  }
  void Mark(ps::Verb verb, int rank, uint64_t pass, uint64_t step) {
    for (int lane = 0; lane <= kGoldenLanes; ++lane) {
      ps::FrameHeader header = Header(verb, pass, step);
      header.clear_batches();
      if (verb == ps::BEGIN) header.mutable_learnt()->set_pass(pass);
      Ask(rank, lane, header, "");
    }
  }
  // Everything goes, and a few rows and a dense block come.
  void Load() {
    for (int lane = 0; lane < kGoldenLanes; ++lane) Ask(0, lane, Header(ps::CLEAR_LANE, 0, 0), "");
    for (base::Key key = 0; key < 40; ++key) {
      const uint32_t shard = base::ShardOf(key);
      const int lane = job_.spec().lanes.Shards(0, 0).Contains(shard) ? 0 : 1;
      for (int table = 0; table < 2; ++table) {
        ps::FrameHeader header = Header(ps::LOAD_ROWS, 0, 0);
        header.set_shard(shard);
        ps::Section& section = *header.add_sections();
        section.set_table(static_cast<uint32_t>(table));
        section.set_keys(1);
        const int width = job_.sparse(table).row_width();
        section.set_width(static_cast<uint32_t>(width));
        std::string body;
        Put(body, key);
        for (int i = 0; i < width; ++i) Put(body, 0.01f * static_cast<float>(key + 1) + 0.001f * static_cast<float>(i));
        Ask(0, lane, header, body);
      }
    }
    ps::FrameHeader header = Header(ps::LOAD_DENSE, 0, 0);
    header.set_count(5);
    std::string body;
    for (int i = 0; i < kGoldenDense * (1 + job_.dense().state_count()); ++i)
      Put(body, 0.25f + 0.5f * static_cast<float>(i));
    Ask(0, kGoldenLanes, header, body);
  }
  // Rows, dense parameters and counts, as training and as a save read them.
  void Read(int rank, uint64_t step) {
    const base::GroupedKeys keys(KeysOf(rank, step));
    for (int lane = 0; lane < kGoldenLanes; ++lane) {
      const wire::Range shards = job_.spec().lanes.Shards(0, lane);
      ps::FrameHeader pull = Header(ps::PULL, 0, step);
      pull.set_kind(ps::INFER);
      std::string body;
      ps::Section& section = *pull.add_sections();
      for (const base::Key key : keys.view().keys) {
        if (!shards.Contains(base::ShardOf(key))) continue;
        Put(body, key);
        section.set_keys(section.keys() + 1);
      }
      section.set_width(static_cast<uint32_t>(kGoldenDims[0]));
      Ask(rank, lane, pull, body);
      Ask(rank, lane, Header(ps::COUNT_ROWS, 0, 0), "");
      ps::FrameHeader rows = Header(ps::READ_ROWS, 0, 0);
      rows.add_sections()->set_table(1);
      rows.set_shard(static_cast<uint32_t>(shards.begin));
      rows.set_count(10);
      Ask(rank, lane, rows, "");
    }
    ps::FrameHeader dense = Header(ps::PULL_DENSE, 0, step);
    dense.set_kind(ps::INFER);
    Ask(rank, kGoldenLanes, dense, "");
    ps::FrameHeader state = Header(ps::READ_DENSE, 0, 0);
    state.set_shard(1);
    Ask(rank, kGoldenLanes, state, "");
  }
  // A frame that was recorded, down a lane: the bytes of the answer.
  std::string Ask(int rank, int lane, const std::string& frame) {
    const grpc::Slice slice(frame);
    grpc::ByteBuffer request(&slice, 1);
    auto& session = sessions_[{rank, lane, stream_}];
    if (session == nullptr) session = std::make_unique<LaneSession>(job_, Worker(rank), lane);
    return BytesOf(session->Answer(request));
  }
  // Every request from now on, and its answer.
  using Record =
      std::function<void(int rank, int lane, ps::Verb verb, const std::string& request, const std::string& reply)>;
  void RecordWith(Record record) { record_ = std::move(record); }
  // Which of a lane's streams requests go down from now on. One that is not open yet is opened then.
  void UseStream(int stream) { stream_ = stream; }
  // Of all requests so far.
  int refused() const { return refused_; }

  ps::FrameHeader Header(ps::Verb verb, uint64_t pass, uint64_t step) const {
    ps::FrameHeader header;
    header.set_verb(verb);
    header.set_pass(pass);
    header.set_step(step);
    header.set_samples(4);
    if (job_.returns() && (verb == ps::PUSH || verb == ps::PUSH_DENSE)) header.add_batches(step);
    if (verb == ps::COMBINE || verb == ps::COMBINE_DENSE) {
      header.set_first_round(step / 2 + 1);  // two changes share a round, and the second goes on in the next
      header.set_last_round(step / 2 + 1 + step % 2);
    }
    return header;
  }
  static float Gradient(int rank, uint64_t step, uint32_t key, int i) {
    return 0.125f * static_cast<float>(
                        (step * 7 + key * 3 + static_cast<uint64_t>(i) * 5 + static_cast<uint64_t>(rank) * 11) % 17) -
           1;
  }
  // Of a sparse table, or the dense parameters (2): of table 1 every other step leaves it to the schedule.
  std::optional<float> RateOf(int table, uint64_t step) const {
    if (rates_ == Rates::kNone || (table == 1 && step % 2 == 1)) return std::nullopt;
    return 0.125f / static_cast<float>(1 + table + step);
  }
  template <typename Value>
  static void Put(std::string& body, Value value) {
    body.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  // The answer's code.
  int Ask(int rank, int lane, ps::FrameHeader header, const std::string& body) {
    header.set_id(next_id_++);
    wire::FrameWriter writer(header, body.size());
    writer.Append(body.data(), body.size());
    const std::string request = BytesOf(writer.Finish()), answer = Ask(rank, lane, request);
    if (record_) record_(rank, lane, header.verb(), request, answer);
    const grpc::Slice slice(answer);
    grpc::ByteBuffer reply(&slice, 1);
    wire::FrameReader frame(reply);
    if (!frame.Open().ok() || frame.header().code() != 0) {
      ++refused_;
      LOG(WARNING) << ps::Verb_Name(header.verb()) << " of worker " << rank << ", lane " << lane << ": "
                   << frame.header().message();
    }
    return frame.header().code();
  }

 private:
  static std::string BytesOf(const grpc::ByteBuffer& buffer) {
    std::vector<grpc::Slice> slices;
    CHECK(buffer.Dump(&slices).ok());
    std::string bytes;
    for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    return bytes;
  }

  HostedJob& job_;
  uint64_t next_id_;
  const Rates rates_;
  Record record_;
  int stream_ = 0;
  int refused_ = 0;
  std::map<std::tuple<int, int, int>, std::unique_ptr<LaneSession>> sessions_;  // by rank, lane and stream
};

// What the workers do after the server's end, as long as it had lived on.
inline int ContinueGolden(HostedJob& job, Rates rates = Rates::kNone) {
  GoldenWorkers workers(job, 100'000, rates);
  const bool geo = job.spec().mode == base::Mode::kGeo;
  if (job.spec().mode == base::Mode::kSync) {
    workers.Step(1, 0, 9);  // worker 0's part is there
  }
  for (uint64_t step = 10; step < 14; ++step) {
    for (int rank = 0; rank < 2; ++rank) {
      if (geo) {
        workers.Push(rank, 0, step, 1, GoldenWorkers::Whole::kYes, ps::ADD);
        workers.PushDense(rank, 0, step, ps::ADD_DENSE);
      } else {
        workers.Step(rank, 0, step);
      }
    }
  }
  return workers.refused();
}

}  // namespace regatta::server
