#include "local/find_mmproj.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/log.h"
#include "hub/selection.h"
#include "model/gguf_spec.h"
#include "weights/gguf.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> mmproj_files_in(const fs::path& folder, const fs::path& except) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (const std::string name = entry.path().filename(); name != except && hub::is_mmproj(name))
      names.push_back(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<> find_mmproj(ModelOptions& model, bool of_hub) {
  if (!is_gguf(model.dir)) return {};
  TRY(const Gguf gguf, Gguf::open(model.dir));
  TRY_VOID(check_language_model(gguf));
  if (!model.mmproj.empty()) return {};
  const fs::path path = model.dir;
  fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<std::string> names = mmproj_files_in(folder, path.filename());
  if (of_hub && names.empty()) {
    folder = folder.parent_path();
    names = mmproj_files_in(folder, "");
  }
  if (of_hub && !names.empty()) names = {hub::best_mmproj(names)};
  model.mmproj = kNoMmproj;
  std::vector<std::string> fitting;
  for (const std::string& name : names) {
    const std::string file = folder / name;
    if (const auto fits = gguf_images(model.dir, file))
      fitting.push_back(file);
    else if (names.size() == 1)
      log_warning("{}: prompts can contain only text", fits.error().message);
  }
  if (fitting.size() > 1)
    return invalid(
        "mmproj", "the files {} fit the model: choose one with --mmproj, or serve only text with --no-mmproj",
        fmt::join(fitting, ", "));
  if (!fitting.empty()) model.mmproj = fitting.front();
  return {};
}

}  // namespace octavo
