#include "fleet/pick/old_config.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {"eviction-priority-then-time-ordering", "priority-then-time-eviction-order-policy"},
    {"eviction-sheddable-filter", "sheddable-eviction-filter"},
    {"kv-cache-scorer", "kv-cache-utilization-scorer"},
    {"model-server-protocol-metrics", "core-metrics-extractor"},
    {"model-server-protocol-models", "models-data-extractor"},
    {"tokenizer", "token-producer"},
};

// Parameters that had no effect in llm-d, or belonged to parts that this picker does not have.
constexpr std::pair<std::string_view, std::string_view> kWithoutEffect[] = {
    {"latency-scorer", "affinityGateTau"},       {"latency-scorer", "affinityGateTauGlobal"},
    {"latency-scorer", "epsilonExploreNeg"},     {"latency-scorer", "epsilonExploreSticky"},
    {"latency-scorer", "negHeadroomTPOTWeight"}, {"latency-scorer", "negHeadroomTTFTWeight"},
    {"latency-scorer", "selectionMode"},         {"queue-scorer", "hashBlockSize"},
    {"queue-scorer", "lruCapacityPerServer"},    {"queue-scorer", "maxPrefixBlocksToMatch"},
};

json::object* object_in(json::object& holder, std::string_view name) {
  json::value* found = holder.if_contains(name);
  return found ? found->if_object() : nullptr;
}

std::string text_in(const json::object& holder, std::string_view name) {
  const json::value* found = holder.if_contains(name);
  return found && found->is_string() ? std::string(found->get_string()) : std::string();
}

// Renames a field. If the new name exists, keeps both fields, and the parser reports the old name.
void move(json::object& from, std::string_view old_name, json::object& to, std::string_view name) {
  if (!from.contains(old_name) || to.contains(name)) return;
  json::value value = from.at(old_name);  // a copy, because an insertion invalidates references
  from.erase(old_name);
  to[name] = std::move(value);
}

void rename(json::object& fields, std::string_view old_name, std::string_view name) {
  move(fields, old_name, fields, name);
}

void drop(json::object& fields, std::string_view name, std::string_view plugin) {
  if (fields.erase(name)) log_warning("{}: {} has no effect", plugin, name);
}

// Changes the type of a plugin. If the plugin has no name, the old type becomes its name, because fields
// may refer to it.
void set_type(json::object& plugin, std::string_view type) {
  const std::string old_type = text_in(plugin, "type");
  if (text_in(plugin, "name").empty()) plugin["name"] = old_type;
  log_info("the plugin type {} has the new name {}", old_type, type);
  plugin["type"] = type;
}

void update_token_producer(json::object& parameters) {
  if (json::object* engine = object_in(parameters, "vllm")) rename(*engine, "http", "url");
}

// Moves the model's name from the old index parameters to a token-producer, which lets the pool's endpoints
// tokenise.
void take_tokenizer(json::object& indexer, json::array& added) {
  const json::object* pool = object_in(indexer, "tokenizersPoolConfig");
  const std::string model = pool ? text_in(*pool, "modelName") : "";
  indexer.erase("tokenizersPoolConfig");
  if (model.empty()) return;
  json::object parameters{{"modelName", model}, {"udsTokenizerConfig", json::object()}};
  added.push_back(json::object{{"type", "token-producer"}, {"parameters", std::move(parameters)}});
}

void update_precise(json::object& parameters, std::string_view name, json::array& added) {
  // Older versions had a single prefix scorer with the parameters of both current scorers. The oldest
  // versions had an index in Redis.
  for (const std::string_view field :
       {"blockSize", "hashBlockSize", "kvCacheRedisAddr", "maxPrefixBlocksToMatch"})
    drop(parameters, field, name);
  json::object* indexer = object_in(parameters, "indexerConfig");
  if (!indexer) return;
  move(*indexer, "tokenProcessorConfig", parameters, "tokenProcessorConfig");
  indexer = object_in(parameters, "indexerConfig");
  move(*indexer, "speculativeIndexing", parameters, "speculativeIndexing");
  // looked up again, because an insertion invalidates pointers
  indexer = object_in(parameters, "indexerConfig");
  drop(*indexer, "prefixStoreConfig", name);
  take_tokenizer(*indexer, added);
  if (json::object* blocks = object_in(*indexer, "kvBlockIndexConfig"))
    drop(*blocks, "maxPrefixBlocksToMatch", name);
}

// Moves the parameters of a producer from a scorer to a new producer.
void take_out(json::object& scorer, std::string_view type, std::string_view reference,
              std::initializer_list<std::string_view> fields, json::array& added) {
  json::object* parameters = object_in(scorer, "parameters");
  if (!parameters || parameters->contains(reference)) return;
  json::object taken;
  for (const std::string_view field : fields) move(*parameters, field, taken, field);
  if (taken.empty()) return;
  const std::string own = text_in(scorer, "name");
  const std::string name = (own.empty() ? text_in(scorer, "type") : own) + "-producer";
  (*parameters)[reference] = name;
  added.push_back(json::object{{"name", name}, {"type", type}, {"parameters", std::move(taken)}});
}

// Converts the old plugins predicted-latency-scorer and slo-aware-routing, which predicted latencies and
// scored endpoints, to latency-scorer and predicted-latency-producer.
void update_latency(json::object& plugin, json::array& added) {
  set_type(plugin, "latency-scorer");
  json::object producer{{"type", "predicted-latency-producer"}};
  if (json::object* parameters = object_in(plugin, "parameters")) {
    json::object taken;
    for (const std::string_view field :
         {"samplingMean", "sloBufferFactor", "streamingMode", "endpointRoleLabel", "contextTTL"})
      move(*parameters, field, taken, field);
    move(*parameters, "maxSampledTokens", taken, "maxDecodeTokenSamplesForPrediction");
    rename(*parameters, "headroomTTFTWeight", "ttftWeight");
    rename(*parameters, "headroomTPOTWeight", "tpotWeight");
    producer["parameters"] = std::move(taken);
  }
  added.push_back(std::move(producer));
}

// The old prefix scorer had two modes, for estimates and for KV cache events.
void take_mode(json::object& plugin) {
  json::object* parameters = object_in(plugin, "parameters");
  if (!parameters || text_in(plugin, "type") != "prefix-cache-scorer") return;
  const bool tracks = text_in(*parameters, "mode") == "cache_tracking";
  parameters->erase("mode");
  if (tracks) set_type(plugin, "precise-prefix-cache-scorer");
}

// Converts `threshold`, a parameter of old profile handlers, to a decider: separate prefill if at least
// `threshold` bytes of the prompt are not cached; 0: for all prompts.
void take_threshold(json::object& handler, bool deciders, json::array& added) {
  constexpr std::int64_t kBytesPerToken = 4;
  if (!handler.contains("parameters") || handler.at("parameters").is_null())
    handler["parameters"] = json::object();
  if (!handler.at("parameters").is_object()) return;
  json::object& parameters = handler.at("parameters").get_object();
  for (const std::string_view field : {"deciderPluginName", "prefillDeciderPluginName", "deciders"})
    if (parameters.contains(field)) return;
  const bool old = parameters.contains("threshold") || parameters.contains("hashBlockSize");
  if (!old && (deciders || text_in(handler, "type") != "pd-profile-handler")) return;
  const json::value threshold =
      parameters.contains("threshold") ? parameters.at("threshold") : json::value(0);
  if (!threshold.is_int64() || threshold.get_int64() < 0) return;  // the parser reports the error
  parameters.erase("threshold");
  parameters.erase("hashBlockSize");
  const std::int64_t tokens = (threshold.get_int64() + kBytesPerToken - 1) / kBytesPerToken;
  const std::string own = text_in(handler, "name");
  const std::string name = (own.empty() ? text_in(handler, "type") : own) + "-decider";
  parameters["deciderPluginName"] = name;
  json::object decider{{"name", name}, {"type", "always-disagg-pd-decider"}};
  if (tokens > 0) {
    decider["type"] = "prefix-based-pd-decider";
    decider["parameters"] = json::object{{"nonCachedTokens", tokens}};
  }
  added.push_back(std::move(decider));
}

void update_plugin(json::object& plugin, json::array& added) {
  for (const auto& [old_type, type] : kTypes)
    if (text_in(plugin, "type") == old_type) set_type(plugin, type);
  if (const std::string type = text_in(plugin, "type");
      type == "predicted-latency-scorer" || type == "slo-aware-routing")
    update_latency(plugin, added);
  take_mode(plugin);
  json::object* parameters = object_in(plugin, "parameters");
  if (!parameters) return;
  const std::string type = text_in(plugin, "type");
  for (const auto& [of, field] : kWithoutEffect)
    if (type == of) drop(*parameters, field, type);
  if (type == "token-producer") update_token_producer(*parameters);
  if (type.starts_with("precise-prefix-cache-")) update_precise(*parameters, type, added);
  if (type == "prefix-cache-scorer")
    take_out(plugin, "approx-prefix-cache-producer", "prefixMatchInfoProducerName",
             {"autoTune", "blockSizeTokens", "blockSize", "hashBlockSize", "maxPrefixBlocksToMatch",
              "maxPrefixTokensToMatch", "lruCapacityPerServer"},
             added);
}

json::object* find_type(json::array& plugins, std::string_view type) {
  for (json::value& plugin : plugins)
    if (plugin.is_object() && text_in(plugin.get_object(), "type") == type) return &plugin.get_object();
  return nullptr;
}

// precise-prefix-cache-scorer (deprecated) has a separate index. If the file also has a
// precise-prefix-cache-producer, replaces the scorer by one that uses the producer's index.
void share_index(json::array& plugins) {
  const json::object* producer = find_type(plugins, "precise-prefix-cache-producer");
  json::object* scorer = find_type(plugins, "precise-prefix-cache-scorer");
  if (!producer || !scorer) return;
  const std::string name =
      text_in(*producer, "name").empty() ? text_in(*producer, "type") : text_in(*producer, "name");
  if (const json::object* own = object_in(*scorer, "parameters"); own && !own->empty())
    log_warning("the parameters of {} have no effect, because {} is configured", text_in(*scorer, "type"),
                name);
  set_type(*scorer, "prefix-cache-scorer");
  (*scorer)["parameters"] = json::object{{"prefixMatchInfoProducerName", name}};
}

}  // namespace

void update_old_config(json::object& file) {
  rename(file, "data", "dataLayer");
  drop(file, "metadata", "config");
  json::value* plugins = file.if_contains("plugins");
  if (!plugins || !plugins->is_array()) return;
  json::array& list = plugins->get_array();
  json::array added;
  for (json::value& plugin : list)
    if (plugin.is_object()) update_plugin(plugin.get_object(), added);
  const bool deciders =
      find_type(list, "prefix-based-pd-decider") || find_type(list, "always-disagg-pd-decider");
  for (json::value& plugin : list)
    if (plugin.is_object() && (text_in(plugin.get_object(), "type") == "pd-profile-handler" ||
                               text_in(plugin.get_object(), "type") == "disagg-profile-handler"))
      take_threshold(plugin.get_object(), deciders, added);
  for (json::value& plugin : added) {
    const std::string type = text_in(plugin.get_object(), "type");
    if (plugin.get_object().contains("name") || !find_type(list, type)) list.push_back(std::move(plugin));
  }
  share_index(list);
}

}  // namespace octavo::fleet
