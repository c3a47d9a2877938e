#include "hub/snapshot.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "hub/selection.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kIndexBytesMax = 64 << 20;

// Names are relative to the folder. Broken links are skipped.
std::vector<std::string> names_below(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::recursive_directory_iterator at(folder, ignored), end; at != end; at.increment(ignored))
    if (at->is_regular_file(ignored)) names.push_back(at->path().lexically_relative(folder).string());
  std::ranges::sort(names);
  return names;
}

std::unexpected<Error> missing(std::string_view file) {
  return field_failure("model", ErrorCode::not_found, "{} is missing", file);
}

Result<std::set<std::string>> shards_of(const fs::path& index) {
  std::error_code error;
  if (const std::uintmax_t size = fs::file_size(index, error); error || size > kIndexBytesMax)
    return missing(fmt::format("a readable {}", index.filename().string()));
  std::ifstream in(index, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  boost::system::error_code wrong;
  const boost::json::value json = boost::json::parse(text, wrong);
  const boost::json::value* map = wrong ? nullptr : json.find_pointer("/weight_map", wrong);
  if (map == nullptr || !map->is_object())
    return missing(fmt::format("a readable {}", index.filename().string()));
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map->get_object())
    if (shard.is_string()) shards.emplace(shard.get_string());
  return shards;
}

}  // namespace

Result<fs::path> model_in(const fs::path& snapshot, std::string_view variant) {
  const std::vector<std::string> names = names_below(snapshot);
  const auto exists = [&](std::string_view name) { return std::ranges::binary_search(names, name); };
  const WeightFiles& files = weight_files(names);
  const bool sharded = exists(files.index);
  if (!variant.empty() || (!sharded && !exists(files.single))) {
    TRY(const std::vector<std::string> parts, gguf_parts(names, variant));
    if (const Part part = part_of(parts.front()); parts.size() < part.of)
      return field_failure("model", ErrorCode::not_found, "only {2} of the {0} parts of {1} exist", part.of,
                           part.stem, parts.size());
    return snapshot / parts.front();
  }
  if (!exists("config.json") && !exists("params.json")) return missing("config.json");
  if (!sharded) return snapshot;
  TRY(const std::set<std::string> shards, shards_of(snapshot / files.index));
  for (const std::string& shard : shards)
    if (!exists(shard)) return missing(shard);
  return snapshot;
}

Result<fs::path> adapter_in(const fs::path& snapshot) {
  TRY_VOID(adapter_files(names_below(snapshot)));
  return snapshot;
}

bool is_complete(const fs::path& snapshot) {
  if (model_in(snapshot, "") || adapter_in(snapshot)) return true;
  for (const std::string& name : names_below(snapshot)) {
    if (name.ends_with(".gguf") && model_in(snapshot, fs::path(part_of(name).stem).filename().string()))
      return true;
  }
  return false;
}

}  // namespace octavo::hub
