#include "hub/model_name.h"

#include <algorithm>
#include <cctype>

namespace octavo::hub {
namespace {

constexpr std::size_t kNameMax = 96;       // limit of the hub
constexpr std::size_t kRevisionMax = 255;  // limit of file names

bool word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool word_dot_or_dash(char c) { return word(c) || c == '.' || c == '-'; }

// Returns true for a valid "org" or "name" of the hub, which is also a safe file name.
bool is_segment(std::string_view segment) {
  return !segment.empty() && std::ranges::all_of(segment, word_dot_or_dash) && word(segment.front()) &&
         word(segment.back()) && segment.find("..") == std::string_view::npos &&
         segment.find("--") == std::string_view::npos;
}

// Returns true for a valid branch or tag. The rules are at least as strict as Git's, and no segment can
// leave the folder of refs.
bool is_revision(std::string_view revision) {
  if (revision.empty() || revision.size() > kRevisionMax || revision.ends_with('/')) return false;
  for (char before = '/'; const char c : revision) {
    if (!word_dot_or_dash(c) && c != '/' && c != '+') return false;
    if (before == '/' && (c == '.' || c == '/')) return false;
    before = c;
  }
  return true;
}

}  // namespace

Result<ModelName> parse_model_name(std::string_view text) {
  ModelName name;
  std::string_view repo = text;
  if (const std::size_t colon = repo.find(':'); colon != std::string_view::npos) {
    name.variant = repo.substr(colon + 1);
    repo = repo.substr(0, colon);
    if (name.variant.empty() || !std::ranges::all_of(name.variant, word_dot_or_dash))
      return invalid(
          "model",
          "{}: the colon must be followed by the name of a GGUF variant, as in org/name@revision:Q4_K_M",
          text);
  }
  if (const std::size_t at = repo.find('@'); at != std::string_view::npos) {
    name.revision = repo.substr(at + 1);
    repo = repo.substr(0, at);
    if (!is_revision(name.revision))
      return invalid("model", "{}: the @ must be followed by a branch, a tag or a commit", text);
  }
  const std::size_t slash = repo.find('/');
  const bool both = slash == std::string_view::npos
                        ? is_segment(repo)
                        : is_segment(repo.substr(0, slash)) && is_segment(repo.substr(slash + 1));
  if (!both || repo.size() > kNameMax || repo.ends_with(".git"))
    return invalid("model",
                   "{} is not the name of a model on the Hub (org/name, org/name@revision, org/name:Q4_K_M)",
                   text);
  name.repo = repo;
  return name;
}

bool is_commit(std::string_view revision) {
  return revision.size() == 40 && std::ranges::all_of(revision, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace octavo::hub
