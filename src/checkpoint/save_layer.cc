#include "checkpoint/save_layer.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "base/file.h"

namespace regatta::checkpoint {
namespace {

absl::StatusOr<SaveLayer> OpenLayer(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kManifestName);
  const absl::StatusOr<std::string> text = base::ReadFile(path, kMaxManifestBytes);
  if (absl::IsNotFound(text.status()))
    return absl::NotFoundError(absl::StrCat(folder, " is no save: it has no ", kManifestName));
  if (!text.ok()) return text.status();
  absl::StatusOr<Manifest> manifest = ParseManifest(*text);
  if (!manifest.ok()) return base::Annotate(manifest.status(), path);
  SaveLayer layer;
  layer.folder = folder;
  layer.manifest = *std::move(manifest);
  layer.hash = ManifestHash(*text);
  for (uint32_t i = 0; i < layer.manifest.files.size(); ++i) {
    ASSIGN_OR_RETURN(auto file, DataFile::Open(folder, i, layer.manifest.files[i]));
    RETURN_IF_ERROR(file->CheckHeader());
    layer.files.push_back(std::move(file));
  }
  return layer;
}

// "" where two saves have the same tables and dense parameters.
std::string SchemaProblem(const Manifest& a, const Manifest& b) {
  for (const SavedSparse& table : a.sparse) {
    const SavedSparse* other = b.FindSparse(table.config.name);
    if (other == nullptr || SchemaHash(*other) != SchemaHash(table)) return "table " + table.config.name;
  }
  if (a.sparse.size() != b.sparse.size()) return "the number of sparse tables";
  if (a.dense.has_value() != b.dense.has_value()) return "the dense parameters";
  if (a.dense && SchemaHash(*a.dense) != SchemaHash(*b.dense)) return "the dense parameters";
  return "";
}

bool SamePlace(const std::optional<SavePart>& a, const std::optional<SavePart>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return std::tie(a->server, a->servers, a->shards, a->dense) == std::tie(b->server, b->servers, b->shards, b->dense);
}

absl::Status CheckLink(const SaveLayer& save, const SaveLayer& below) {
  if (below.hash != save.manifest.base->manifest)
    return absl::DataLossError(absl::StrCat(save.folder, ": its base ", below.folder,
                                            " is not the save that it was made for (another manifest)"));
  if (const std::string what = SchemaProblem(save.manifest, below.manifest); !what.empty())
    return absl::DataLossError(absl::StrCat(save.folder, ": its base ", below.folder, " differs in ", what));
  if (!SamePlace(save.manifest.part, below.manifest.part))
    return absl::DataLossError(
        absl::StrCat(save.folder, ": its base ", below.folder, " holds another part of the model"));
  return absl::OkStatus();
}

std::string DescribePart(const SaveLayer& layer) {
  const SavePart& part = *layer.manifest.part;
  return absl::StrCat(layer.folder, " (part ", part.server, " of ", part.servers, " of snapshot ", part.snapshot, ")");
}

// That the ranges of all parts, in order, follow each other from 0 to `end`.
absl::Status CheckCover(const std::vector<const SaveLayer*>& parts, PartRange SavePart::*range, uint64_t end,
                        const char* what) {
  uint64_t next = 0;
  for (const SaveLayer* part : parts) {
    const PartRange& held = (*part->manifest.part).*range;
    if (held.begin != next)
      return absl::DataLossError(
          absl::StrCat(DescribePart(*part), " begins at ", what, " ", held.begin, " where ", next, " is next"));
    next = held.end;
  }
  if (next == end) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(DescribePart(*parts.back()), " ends at ", what, " ", next, " of ", end));
}

absl::Status CheckSameSnapshot(const SaveLayer& first, const SaveLayer& other) {
  const SavePart &a = *first.manifest.part, &b = *other.manifest.part;
  if (a.snapshot != b.snapshot || a.servers != b.servers)
    return absl::DataLossError(
        absl::StrCat(DescribePart(other), " and ", DescribePart(first), " are not of one snapshot"));
  if (const std::string what = SchemaProblem(first.manifest, other.manifest); !what.empty())
    return absl::DataLossError(absl::StrCat(DescribePart(other), " and ", DescribePart(first), " differ in ", what));
  if (first.manifest.run != other.manifest.run)
    return absl::DataLossError(
        absl::StrCat(DescribePart(other), " and ", DescribePart(first), " are of different moments of the run"));
  std::set<std::string> names;
  for (const SavedBlob& blob : first.manifest.blobs) names.insert(blob.name);
  for (const SavedBlob& blob : other.manifest.blobs)
    if (names.contains(blob.name))
      return absl::DataLossError(
          absl::StrCat(DescribePart(other), " and ", DescribePart(first), " both hold blob ", blob.name));
  return absl::OkStatus();
}

Extent Numbered(Extent extent, uint32_t first_file) {
  if (extent.items > 0) extent.file += first_file;
  return extent;
}

SavedSparse CombinedSparse(const std::vector<SaveLayer>& layers, const SavedSparse& like) {
  SavedSparse combined{like.config, like.row_width, like.pull_width, 0, {}};
  std::vector<std::pair<uint32_t, ShardExtent>> found;  // with the depth
  for (const SaveLayer& layer : layers) {
    for (const ShardExtent& e : layer.manifest.FindSparse(like.config.name)->extents) {
      found.emplace_back(layer.depth, ShardExtent{e.shard, Numbered(e.extent, layer.first_file)});
      combined.rows += e.extent.items;
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.shard, a.first) < std::tie(b.second.shard, b.first);
  });
  for (const auto& [depth, extent] : found) combined.extents.push_back(extent);
  return combined;
}

}  // namespace

absl::StatusOr<std::vector<SaveLayer>> OpenChain(const std::string& folder) {
  std::vector<SaveLayer> chain;
  std::set<std::string> seen;
  for (std::string at = folder;;) {
    seen.insert(std::filesystem::path(at).lexically_normal().string());
    absl::StatusOr<SaveLayer> layer = OpenLayer(at);
    if (!layer.ok() && !chain.empty())
      return absl::DataLossError(
          absl::StrCat(chain.back().folder, ": its base cannot be read: ", layer.status().message()));
    if (!layer.ok()) return layer.status();
    if (!chain.empty()) RETURN_IF_ERROR(CheckLink(chain.back(), *layer));
    chain.push_back(*std::move(layer));
    const std::optional<SaveBase>& below = chain.back().manifest.base;
    if (!below) break;
    at = BaseFolder(at, below->id);
    if (seen.contains(std::filesystem::path(at).lexically_normal().string()))
      return absl::DataLossError(
          absl::StrCat(chain.back().folder, ": its base ", at, " is made from itself: the bases go round in a circle"));
    if (chain.size() >= kLongestChain)
      return absl::DataLossError(absl::StrCat(folder, " lies on more than ", kLongestChain, " saves"));
  }
  std::reverse(chain.begin(), chain.end());
  for (size_t i = 0; i < chain.size(); ++i) {
    chain[i].depth = static_cast<uint32_t>(i);
    chain[i].newest = i + 1 == chain.size();
  }
  return chain;
}

absl::Status CheckParts(std::vector<std::vector<SaveLayer>>& parts) {
  for (const auto& part : parts)
    if (!part.back().manifest.part)
      return absl::DataLossError(absl::StrCat(part.back().folder, " is a whole save, not a part of one"));
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return a.back().manifest.part->server < b.back().manifest.part->server;
  });
  std::vector<const SaveLayer*> tops;
  for (const auto& part : parts) tops.push_back(&part.back());
  for (size_t i = 0; i < tops.size(); ++i)
    for (size_t j = 0; j < i; ++j) RETURN_IF_ERROR(CheckSameSnapshot(*tops[j], *tops[i]));
  const uint32_t servers = tops[0]->manifest.part->servers;
  for (uint32_t server = 0; server < std::max<size_t>(servers, tops.size()); ++server) {
    if (server < tops.size() && tops[server]->manifest.part->server == server) continue;
    if (server > 0 && server < tops.size() && tops[server]->manifest.part->server < server)
      return absl::DataLossError(absl::StrCat(DescribePart(*tops[server]), " is there twice"));
    return absl::DataLossError(absl::StrCat("part ", server, " of ", servers, " of snapshot ",
                                            tops[0]->manifest.part->snapshot, " is missing beside ", tops[0]->folder));
  }
  RETURN_IF_ERROR(CheckCover(tops, &SavePart::shards, base::kVirtualShards, "shard"));
  return CheckCover(tops, &SavePart::dense, tops[0]->manifest.dense ? tops[0]->manifest.dense->size : 0,
                    "dense element");
}

Manifest CombinedManifest(std::vector<SaveLayer>& layers) {
  uint32_t files = 0;
  for (SaveLayer& layer : layers) {
    layer.first_file = files;
    files += static_cast<uint32_t>(layer.files.size());
  }
  std::vector<const SaveLayer*> tops;
  for (const SaveLayer& layer : layers)
    if (layer.newest) tops.push_back(&layer);
  if (layers.size() == 1) return layers[0].manifest;
  if (tops.size() > 1)
    std::sort(tops.begin(), tops.end(), [](const SaveLayer* a, const SaveLayer* b) {
      return a->manifest.part->server < b->manifest.part->server;
    });
  Manifest combined;
  combined.run = tops[0]->manifest.run;
  combined.base = tops[0]->manifest.base;
  if (tops.size() == 1) combined.part = tops[0]->manifest.part;
  for (const SaveLayer& layer : layers)
    combined.files.insert(combined.files.end(), layer.manifest.files.begin(), layer.manifest.files.end());
  for (const SavedSparse& table : tops[0]->manifest.sparse) combined.sparse.push_back(CombinedSparse(layers, table));
  if (tops[0]->manifest.dense) {
    combined.dense = tops[0]->manifest.dense;
    combined.dense->extents.clear();
  }
  for (const SaveLayer* top : tops) {
    for (const SavedBlob& blob : top->manifest.blobs)
      combined.blobs.push_back({blob.name, Numbered(blob.extent, top->first_file)});
    if (!combined.dense) continue;
    for (const DenseExtent& e : top->manifest.dense->extents)
      combined.dense->extents.push_back({e.array, e.begin, Numbered(e.extent, top->first_file)});
  }
  if (combined.dense)
    std::stable_sort(combined.dense->extents.begin(), combined.dense->extents.end(),
                     [](const DenseExtent& a, const DenseExtent& b) {
                       return std::tie(a.array, a.begin) < std::tie(b.array, b.begin);
                     });
  return combined;
}

}  // namespace regatta::checkpoint
