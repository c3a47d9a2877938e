#include "model/support.h"

#include "model/network.h"

namespace octavo {
namespace {

class SupportCheck {
 public:
  SupportCheck(const ModelSpec& spec, const CacheOptions& cache, const Backend& backend)
      : spec_(spec), cache_(cache), backend_(backend) {}

  Result<> run() const {
    const Network network = network_of(spec_);
    for (const NetworkPart* part : network.parts()) TRY_VOID(check_needs(*part, ""));
    for (std::size_t i = 0; i < network.layers.size(); ++i)
      for (const Block* block : network.layers[i].blocks())
        TRY_VOID(check_block(*block, fmt::format(", layer {} ({})", spec_.first_layer() + i, block->text())));
    return {};
  }

 private:
  Result<> check_needs(const NetworkPart& part, std::string_view where) const {
    for (const Need need : part.needs())
      if (!backend_.ops.has(need))
        return refused(where,
                       fmt::format("needs {}, which device {} does not support", name(need), backend_.name));
    return {};
  }

  Result<> check_block(const Block& block, std::string_view where) const {
    TRY_VOID(check_needs(block, where));
    for (const std::optional<CacheNeed>& need : {block.cache(), block.entries(), block.source()}) {
      if (!need) continue;
      const Result<> supported = backend_.ops.supports(kv_spec(*need, cache_), need->q_heads);
      if (supported) continue;
      const Error& error = supported.error();
      if (error.code != ErrorCode::unsupported || error.field == "kv_cache_dtype") return supported;
      return refused(where, fmt::format("has a {} that device {} does not support: {}", error.field,
                                        backend_.name, error.message));
    }
    return {};
  }

  std::unexpected<Error> refused(std::string_view where, std::string_view why) const {
    std::string_view remedy = "set --device cpu";
    if (backend_.device->shares_host_memory())
      remedy = "no device supports this model";
    else if (spec_.inputs.sound && spec_.inputs.sound->joined > 0)
      remedy = R"(set --device cpu, or leave audio out by --limit-mm-per-prompt '{"audio": 0}')";
    return field_failure("device", ErrorCode::unsupported, "{}{} {}; {}", spec_.architecture, where, why,
                         remedy);
  }

  const ModelSpec& spec_;
  const CacheOptions& cache_;
  const Backend& backend_;
};

}  // namespace

Result<> check_support(const ModelSpec& spec, const CacheOptions& cache, const Backend& backend) {
  TRY_VOID(SupportCheck(spec, cache, backend).run());
  if (!spec.media.tower) return {};
  ModelSpec tower = *spec.media.tower;
  if (tower.architecture.empty()) tower.architecture = spec.architecture + "'s encoder";
  return SupportCheck(tower, {}, backend).run();
}

}  // namespace octavo
