#include "server/status_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "base/printable.h"

namespace regatta::server {
namespace {

using Json = nlohmann::ordered_json;
using Cells = std::vector<std::string>;

std::string Bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, bytes, kUnits[unit]);
}

std::string Time(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (whole >= 3600) return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
  return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
}

// Columns as wide as their widest cell, two blanks between them; the first line is their names.
std::string Align(const std::vector<Cells>& lines) {
  std::vector<size_t> widths;
  for (const Cells& cells : lines) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string text;
  for (const Cells& cells : lines) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i)
      absl::StrAppend(&line, i == 0 ? "" : "  ", cells[i], std::string(widths[i] - cells[i].size(), ' '));
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

uint64_t Rows(const ps::StatusReply& reply) {
  uint64_t rows = 0;
  for (const ps::TableStatus& table : reply.tables()) rows += table.rows();
  return rows;
}

// Staleness is measured in these modes only.
bool HasStaleness(const ps::StatusReply& reply) { return reply.mode() == "async" || reply.mode() == "half_async"; }

bool HasJob(const ServerAnswer& answer) { return answer.status.ok() && answer.reply.workers() > 0; }

std::string Message(const ServerAnswer& answer) { return std::string(answer.status.message()); }

// The first server that has a job; null where none has.
const ServerAnswer* WithJob(const std::vector<ServerAnswer>& answers) {
  const auto found = std::find_if(answers.begin(), answers.end(), HasJob);
  return found == answers.end() ? nullptr : &*found;
}

// Of a server that has a job.
Cells ServerCells(const ServerAnswer& answer) {
  const ps::StatusReply& r = answer.reply;
  return {absl::StrCat(r.server()),
          answer.endpoint,
          base::Printable(r.mode()),
          Time(r.uptime()),
          absl::StrCat(Rows(r)),
          Bytes(static_cast<double>(r.resident_bytes())),
          absl::StrFormat("%.0f", r.keys_per_second()),
          Bytes(static_cast<double>(r.bytes_in())),
          Bytes(static_cast<double>(r.bytes_out())),
          absl::StrFormat("%.2f", r.shard_skew()),
          HasStaleness(r) ? absl::StrFormat("%.1f", r.staleness()) : "-"};
}

double Loss(const ps::WorkerProgress& progress) {
  return progress.weight_sum() > 0 ? progress.loss_sum() / progress.weight_sum() : 0;
}

Cells WorkerCells(const ps::WorkerStatus& worker) {
  const ps::WorkerProgress& p = worker.progress();
  Cells cells = {absl::StrCat(worker.rank()), base::Printable(worker.state()),
                 worker.where().empty() ? "-" : base::Printable(worker.where())};
  if (worker.where().empty()) return cells;
  const bool here = worker.state() == "here";
  cells.push_back(here ? absl::StrFormat("%.1f s ago", worker.silence()) : "-");
  cells.push_back(absl::StrCat(p.epoch()));
  cells.push_back(absl::StrCat(p.steps()));
  cells.push_back(absl::StrCat(p.samples()));
  cells.push_back(here && p.training() ? absl::StrFormat("%.1f", p.samples_per_second()) : "-");
  cells.push_back(p.weight_sum() > 0 ? absl::StrFormat("%.6f", Loss(p)) : "-");
  cells.push_back(
      p.pushes() > 0 ? absl::StrFormat("%.1f", static_cast<double>(p.staleness_sum()) / static_cast<double>(p.pushes()))
                     : "-");
  return cells;
}

Json TableJson(const ps::TableStatus& table) {
  return {{"name", base::Printable(table.name())}, {"rows", table.rows()}, {"memory_bytes", table.memory_bytes()}};
}

Json ServerJson(const ServerAnswer& answer) {
  const ps::StatusReply& r = answer.reply;
  Json out = {{"endpoint", answer.endpoint}, {"ok", answer.status.ok()}};
  if (!answer.status.ok()) {
    out["error"] = base::Printable(Message(answer));
    return out;
  }
  out.update({{"uptime", r.uptime()}, {"resident_bytes", r.resident_bytes()}, {"protocol", r.protocol()}});
  if (!HasJob(answer)) {
    out["mode"] = nullptr;
    return out;
  }
  Json tables = Json::array();
  for (const ps::TableStatus& table : r.tables()) tables.push_back(TableJson(table));
  out.update({{"mode", base::Printable(r.mode())},
              {"server", r.server()},
              {"servers", r.servers()},
              {"workers", r.workers()},
              {"rows", Rows(r)},
              {"tables", std::move(tables)},
              {"dense_parameters", r.dense_parameters()},
              {"keys_per_second", r.keys_per_second()},
              {"keys_pulled", r.keys_pulled()},
              {"keys_pushed", r.keys_pushed()},
              {"pulls", r.pulls()},
              {"pushes", r.pushes()},
              {"dense_pulls", r.dense_pulls()},
              {"dense_pushes", r.dense_pushes()},
              {"refused", r.refused()},
              {"bytes_in", r.bytes_in()},
              {"bytes_out", r.bytes_out()},
              {"shard_skew", r.shard_skew()},
              {"sync_wait", r.sync_wait()}});
  if (HasStaleness(r)) out.update({{"staleness", r.staleness()}, {"staleness_max", r.staleness_max()}});
  return out;
}

Json WorkerJson(const ps::WorkerStatus& worker) {
  const ps::WorkerProgress& p = worker.progress();
  Json out = {{"rank", worker.rank()},
              {"state", base::Printable(worker.state())},
              {"where", base::Printable(worker.where())},
              {"silence", worker.silence()},
              {"training", p.training()},
              {"epoch", p.epoch()},
              {"steps", p.steps()},
              {"samples", p.samples()},
              {"samples_per_second", p.samples_per_second()},
              {"pushes_in_flight", p.pushes_in_flight()}};
  out["loss"] = p.weight_sum() > 0 ? Json(Loss(p)) : Json(nullptr);
  out["staleness"] =
      p.pushes() > 0 ? Json(static_cast<double>(p.staleness_sum()) / static_cast<double>(p.pushes())) : Json(nullptr);
  return out;
}

}  // namespace

std::string StatusTable(const std::vector<ServerAnswer>& answers) {
  std::vector<Cells> servers = {
      {"SERVER", "ENDPOINT", "MODE", "UP", "ROWS", "MEMORY", "KEYS/S", "IN", "OUT", "SKEW", "STALENESS"}};
  for (const ServerAnswer& answer : answers)
    if (HasJob(answer)) servers.push_back(ServerCells(answer));
  std::string text = servers.size() > 1 ? Align(servers) : "";
  for (const ServerAnswer& answer : answers) {
    if (HasJob(answer)) continue;
    absl::StrAppend(&text, "server ", answer.endpoint, ": ",
                    answer.status.ok()
                        ? absl::StrCat("up for ", Time(answer.reply.uptime()), ", no worker has come yet")
                        : absl::StrCat("no answer: ", base::Printable(Message(answer))),
                    "\n");
  }
  const ServerAnswer* const job = WithJob(answers);
  if (job == nullptr) return text;
  std::vector<Cells> workers = {
      {"WORKER", "STATE", "WHERE", "HEARD", "EPOCH", "STEPS", "SAMPLES", "INS/S", "LOSS", "STALENESS"}};
  for (const ps::WorkerStatus& worker : job->reply.members()) workers.push_back(WorkerCells(worker));
  return absl::StrCat(text, "\n", Align(workers));
}

std::string StatusJson(const std::vector<ServerAnswer>& answers) {
  Json servers = Json::array(), workers = Json::array();
  for (const ServerAnswer& answer : answers) servers.push_back(ServerJson(answer));
  if (const ServerAnswer* const job = WithJob(answers))
    for (const ps::WorkerStatus& worker : job->reply.members()) workers.push_back(WorkerJson(worker));
  const Json all = {{"servers", std::move(servers)}, {"workers", std::move(workers)}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace regatta::server
