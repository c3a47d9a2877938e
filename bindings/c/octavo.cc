#include "octavo.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "base/c_abi.h"
#include "local/options_json.h"
#include "local/version.h"
#include "local_engine.h"
#include "openai/request_fields.h"

struct octavo_engine {
  std::unique_ptr<octavo::LocalEngine> local;
};

namespace octavo {
namespace {

octavo_code code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return OCTAVO_INVALID_ARGUMENT;
    case ErrorCode::not_found: return OCTAVO_NOT_FOUND;
    case ErrorCode::unsupported: return OCTAVO_UNSUPPORTED;
    case ErrorCode::corrupt: return OCTAVO_CORRUPT;
    case ErrorCode::io: return OCTAVO_IO;
    case ErrorCode::resource_exhausted: return OCTAVO_RESOURCE_EXHAUSTED;
    case ErrorCode::unavailable: return OCTAVO_UNAVAILABLE;
    case ErrorCode::internal: break;
  }
  return OCTAVO_INTERNAL;
}

template <class Work>
std::int32_t guarded(octavo_error* error, Work&& work) noexcept {
  return guarded_call<code_of>(error, std::forward<Work>(work));
}

// Writes at most `capacity` bytes. bytes: receives the full length.
void write(std::string_view text, char* out, std::size_t capacity, std::size_t* bytes) {
  *bytes = text.size();
  std::ranges::copy_n(text.begin(), static_cast<std::ptrdiff_t>(std::min(capacity, text.size())), out);
}

octavo_finish finish_of(const std::optional<FinishReason>& reason) {
  if (!reason) return OCTAVO_UNFINISHED;
  switch (*reason) {
    case FinishReason::stop: return OCTAVO_STOP;
    case FinishReason::length: return OCTAVO_LENGTH;
    case FinishReason::repetition: return OCTAVO_REPETITION;
    case FinishReason::abort: return OCTAVO_ABORT;
    case FinishReason::error: break;
  }
  return OCTAVO_ERROR;
}

// C structs of outputs, and the memory that they point to.
struct Batch final : octavo_outputs {
  explicit Batch(std::vector<OwnedOutput> outputs) : octavo_outputs{}, owned(std::move(outputs)) {
    views.reserve(owned.size());
    details.reserve(owned.size());
    for (const OwnedOutput& output : owned) {
      views.push_back(view(output));
      details.push_back(details_of(output));
    }
    items = views.data();
    count = views.size();
  }

  const octavo_logprobs* view(const std::vector<TokenLogprobs>& all) {
    if (all.empty()) return nullptr;
    std::vector<octavo_logprobs>& out = logprobs.emplace_back();
    out.reserve(all.size());
    for (const TokenLogprobs& each : all) {
      std::vector<octavo_candidate>& top = candidates.emplace_back();
      top.reserve(each.top.size());
      for (const auto& [token, logprob] : each.top) top.push_back({token, logprob});
      out.push_back({each.id, each.logprob, each.rank, top.data(), top.size()});
    }
    return out.data();
  }

  octavo_output view(const OwnedOutput& o) {
    const auto* stop_text = std::get_if<std::string>(&o.part.stop_reason);
    const auto* stop_token = std::get_if<TokenId>(&o.part.stop_reason);
    const auto seconds = [&](std::int64_t at_us) {
      return at_us == 0 ? 0.0 : static_cast<double>(at_us - o.times.arrived_us) * 1e-6;
    };
    octavo_output out{};
    out.request = o.request;
    out.index = o.part.index;
    out.finish = finish_of(o.part.finish);
    out.last = o.last;
    out.text = o.part.text.data();
    out.text_bytes = o.part.text.size();
    out.tokens = o.part.token_ids.data();
    out.token_count = o.part.token_ids.size();
    out.logprobs = view(o.part.logprobs);
    out.stop_text = stop_text ? stop_text->data() : nullptr;
    out.stop_text_bytes = stop_text ? stop_text->size() : 0;
    out.stop_token = stop_token ? *stop_token : -1;
    out.error = o.part.finish == FinishReason::error ? o.error.data() : nullptr;
    out.error_bytes = out.error ? o.error.size() : 0;
    out.prompt_tokens = o.prompt ? o.prompt->data() : nullptr;
    out.prompt_token_count = o.prompt ? o.prompt->size() : 0;
    out.prompt_logprobs = view(o.prompt_logprobs);
    out.prompt_logprob_count = o.prompt_logprobs.size();
    out.cached_tokens = o.cached_tokens;
    out.scheduled_s = seconds(o.times.scheduled_us);
    out.first_token_s = seconds(o.times.first_token_us);
    out.last_token_s = seconds(o.times.last_token_us);
    return out;
  }

  std::vector<OwnedOutput> owned;
  std::vector<octavo_output> views;
  std::vector<std::string> details;
  std::deque<std::vector<octavo_logprobs>> logprobs;
  std::deque<std::vector<octavo_candidate>> candidates;
};

}  // namespace
}  // namespace octavo

using octavo::guarded;
using octavo::Result;

int32_t octavo_abi(void) { return OCTAVO_ABI; }

const char* octavo_version(void) { return octavo::kVersion.data(); }

int32_t octavo_create(const char* options, octavo_engine** engine, octavo_error* error) {
  return guarded(error, [&]() -> Result<> {
    TRY(const boost::json::object fields, octavo::openai::parse_body(options));
    TRY(auto local, octavo::LocalEngine::create(fields));
    *engine = new octavo_engine{std::move(local)};
    return {};
  });
}

void octavo_destroy(octavo_engine* engine) { delete engine; }

const char* octavo_info(const octavo_engine* engine) { return engine->local->info().c_str(); }

int32_t octavo_submit(octavo_engine* engine, uint64_t request, const char* body, size_t body_bytes,
                      octavo_mode mode, octavo_error* error) {
  return guarded(error, [&]() -> Result<> {
    TRY(const boost::json::object fields, octavo::openai::parse_body({body, body_bytes}));
    return engine->local->submit(request, fields, mode == OCTAVO_DELTA);
  });
}

int32_t octavo_submit_texts(octavo_engine* engine, uint64_t request, const char* route, const char* body,
                            size_t body_bytes, octavo_error* error) {
  return guarded(error, [&]() -> Result<> {
    TRY(const boost::json::object fields, octavo::openai::parse_body({body, body_bytes}));
    return engine->local->submit_texts(request, route, fields);
  });
}

void octavo_abort(octavo_engine* engine, uint64_t request) { engine->local->abort(request); }

octavo_outputs* octavo_wait(octavo_engine* engine, int32_t timeout_ms) {
  octavo_outputs* outputs = nullptr;
  guarded(nullptr, [&]() -> Result<> {
    std::vector<octavo::OwnedOutput> outputs_now = engine->local->wait(timeout_ms);
    if (!outputs_now.empty()) outputs = new octavo::Batch(std::move(outputs_now));
    return {};
  });
  return outputs;
}

void octavo_outputs_free(octavo_outputs* outputs) { delete static_cast<octavo::Batch*>(outputs); }

const char* octavo_details(const octavo_outputs* outputs, size_t index) {
  const std::string& details = static_cast<const octavo::Batch*>(outputs)->details[index];
  return details.empty() ? nullptr : details.c_str();
}

int32_t octavo_load_adapter(octavo_engine* engine, const char* name, const char* path, octavo_error* error) {
  return guarded(error, [&] { return engine->local->load_adapter(name, path); });
}

int32_t octavo_encode(const octavo_engine* engine, const char* text, size_t text_bytes,
                      int32_t add_special_tokens, int32_t* tokens, size_t capacity, size_t* count,
                      octavo_error* error) {
  return guarded(error, [&]() -> Result<> {
    TRY(const auto ids, engine->local->tokenizer().encode({text, text_bytes}, add_special_tokens != 0));
    *count = ids.size();
    std::ranges::copy_n(ids.begin(), static_cast<std::ptrdiff_t>(std::min(capacity, ids.size())), tokens);
    return {};
  });
}

int32_t octavo_decode(const octavo_engine* engine, const int32_t* tokens, size_t count,
                      int32_t skip_special_tokens, char* text, size_t capacity, size_t* text_bytes,
                      octavo_error* error) {
  return guarded(error, [&]() -> Result<> {
    TRY(const std::string decoded,
        engine->local->tokenizer().decode({tokens, count}, skip_special_tokens != 0));
    octavo::write(decoded, text, capacity, text_bytes);
    return {};
  });
}

void octavo_get_stats(const octavo_engine* engine, octavo_stats* stats, size_t bytes) {
  octavo_stats all{};
  all.healthy = 1;
  for (const octavo::EngineStats& s : engine->local->engine().stats()) {
    all.healthy = all.healthy != 0 && s.condition.healthy;
    all.running += s.requests.running;
    all.waiting += s.requests.waiting;
    all.blocks_total += s.blocks.total;
    all.blocks_used += s.blocks.used;
    all.blocks_cached += s.blocks.cached;
    all.prompt_tokens += s.tokens.prompt;
    all.prompt_tokens_cached += s.tokens.prompt_cached;
    all.generation_tokens += s.tokens.generation;
    all.prefix_queries += s.prefix_cache.queries;
    all.prefix_hits += s.prefix_cache.hits;
    all.preemptions += s.preemptions;
    all.sleep_level = std::max<int>(all.sleep_level, s.condition.sleep_level);
  }
  std::memcpy(stats, &all, std::min(bytes, sizeof all));
}

int32_t octavo_metrics(const octavo_engine* engine, char* text, size_t capacity, size_t* text_bytes,
                       octavo_error* error) {
  return guarded(error, [&]() -> Result<> {
    octavo::write(engine->local->metrics(), text, capacity, text_bytes);
    return {};
  });
}

int32_t octavo_sleep(octavo_engine* engine, int32_t level, octavo_error* error) {
  return guarded(error, [&] { return engine->local->sleep(level); });
}

int32_t octavo_wake_up(octavo_engine* engine, octavo_error* error) {
  return guarded(error, [&] { return engine->local->wake_up(); });
}

int32_t octavo_pause(octavo_engine* engine, const char* mode, octavo_error* error) {
  return guarded(error, [&] { return engine->local->pause(mode); });
}

void octavo_resume(octavo_engine* engine) { engine->local->engine().resume(); }

const char* octavo_options(void) {
  static const std::string list = boost::json::serialize(octavo::option_list());
  return list.c_str();
}

int32_t octavo_start_profile(octavo_engine* engine, const char* session, octavo_error* error) {
  return guarded(error, [&]() -> Result<> {
    TRY(const boost::json::object fields, octavo::openai::parse_body(session));
    return engine->local->start_profile(fields);
  });
}

int32_t octavo_stop_profile(octavo_engine* engine, octavo_error* error) {
  return guarded(error, [&] { return engine->local->stop_profile(); });
}

void octavo_reset_prefix_cache(octavo_engine* engine) { engine->local->engine().reset_prefix_cache(); }
