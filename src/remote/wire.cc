#include "remote/wire.h"

#include <msgpuck.h>

#include <array>
#include <concepts>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace octavo::remote {
namespace {

template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

// The fields of each struct, listed once for both directions: one that is left out does not compile.

template <class F>
void fields(Is<RepetitionDetection> auto& value, F&& f) {
  auto& [max_pattern_size, min_pattern_size, min_count] = value;
  f(max_pattern_size, min_pattern_size, min_count);
}
template <class F>
void fields(Is<SamplingParams> auto& value, F&& f) {
  auto& [n, temperature, top_p, top_k, min_p, presence_penalty, frequency_penalty, repetition_penalty, seed,
         logit_bias, allowed_token_ids, bad_words, begin_suppress_tokens, bad_word_ids, max_tokens,
         min_tokens, stop, stop_token_ids, ignore_eos, include_stop_str_in_output, repetition_detection,
         logprobs, prompt_logprobs, logprob_token_ids, truncate_prompt_tokens, skip_special_tokens,
         detokenize] = value;
  f(n, temperature, top_p, top_k, min_p, presence_penalty, frequency_penalty, repetition_penalty, seed,
    logit_bias, allowed_token_ids, bad_words, begin_suppress_tokens, bad_word_ids, max_tokens, min_tokens,
    stop, stop_token_ids, ignore_eos, include_stop_str_in_output, repetition_detection, logprobs,
    prompt_logprobs, logprob_token_ids, truncate_prompt_tokens, skip_special_tokens, detokenize);
}
template <class F>
void fields(Is<CacheIdentity> auto& value, F&& f) {
  auto& [adapter, tenant, salt] = value;
  f(adapter, tenant, salt);
}
template <class F>
void fields(Is<grammar::JsonOptions> auto& value, F&& f) {
  auto& [whitespace, strict, any_order, refuse_unknown, refuse_unique] = value;
  f(whitespace, strict, any_order, refuse_unknown, refuse_unique);
}
template <class F>
void fields(Is<grammar::GrammarSource> auto& value, F&& f) {
  auto& [kind, text, options, field] = value;
  f(kind, text, options, field);
}
template <class F>
void fields(Is<AnswerSoFar> auto& value, F&& f) {
  auto& [index, tokens] = value;
  f(index, tokens);
}
template <class F>
void fields(Is<KvTransferParams> auto& value, F&& f) {
  auto& [do_remote_prefill, do_remote_decode, remote_engine_id, remote_request_id, remote_host, remote_port,
         remote_block_ids, remote_num_tokens] = value;
  f(do_remote_prefill, do_remote_decode, remote_engine_id, remote_request_id, remote_host, remote_port,
    remote_block_ids, remote_num_tokens);
}
template <class F>
void fields(Is<Hash128> auto& value, F&& f) {
  auto& [low, high] = value;
  f(low, high);
}
template <class F>
void fields(Is<MediaPart::Tiles> auto& value, F&& f) {
  auto& [tile_rows, tile_columns, top, left, rows, columns, out_rows, out_columns, patch_rows, patch_columns] = value;
  f(tile_rows, tile_columns, top, left, rows, columns, out_rows, out_columns, patch_rows, patch_columns);
}
template <class F>
void fields(Is<MediaPart> auto& value, F&& f) {
  auto& [digest, first, tokens, bytes, columns, row_breaks, tiles, frames, time, continues] = value;
  f(digest, first, tokens, bytes, columns, row_breaks, tiles, frames, time, continues);
}
template <class F>
void fields(Is<ThinkingBudget> auto& value, F&& f) {
  auto& [begin, end, tokens, spent] = value;
  f(begin, end, tokens, spent);
}
template <class F>
void fields(Is<Request> auto& value, F&& f) {
  auto& [name, task, prompt, sampling, eos_ids, priority, identity, read_prefix_cache, source, grammar_after,
         thinking_budget, entropy, answers_so_far, engine, kv_transfer, second_text, media] = value;
  f(name, task, prompt, sampling, eos_ids, priority, identity, read_prefix_cache, source, grammar_after,
    thinking_budget, entropy, answers_so_far, engine, kv_transfer, second_text, media);
}
template <class F>
void fields(Is<TokenLogprobs> auto& value, F&& f) {
  auto& [id, logprob, rank, top] = value;
  f(id, logprob, rank, top);
}
template <class F>
void fields(Is<RequestTimes> auto& value, F&& f) {
  auto& [arrived_us, scheduled_us, first_token_us, last_token_us] = value;
  f(arrived_us, scheduled_us, first_token_us, last_token_us);
}
template <class F>
void fields(Is<Error> auto& value, F&& f) {
  auto& [code, message, field] = value;
  f(code, message, field);
}
template <class F>
void fields(Is<Output> auto& value, F&& f) {
  auto& [id, engine, index, token_ids, logprobs, prompt_logprobs, pooled, cached_tokens, finished, stop_token,
         error, kv_transfer, times, preemptions] = value;
  f(id, engine, index, token_ids, logprobs, prompt_logprobs, pooled, cached_tokens, finished, stop_token,
    error, kv_transfer, times, preemptions);
}
template <class F>
void fields(Is<EngineInfo::ImageRule> auto& value, F&& f) {
  auto& [size, tokens, token_id, unit, row_breaks, whole, tiled, whole_last, frames, video_token_id, time_steps] =
      value;
  f(size, tokens, token_id, unit, row_breaks, whole, tiled, whole_last, frames, video_token_id, time_steps);
}
template <class F>
void fields(Is<EngineInfo::SoundRule> auto& value, F&& f) {
  auto& [mels, frames, places, tokens, token_id, whole] = value;
  f(mels, frames, places, tokens, token_id, whole);
}
template <class F>
void fields(Is<EngineInfo::SourceRule> auto& value, F&& f) {
  auto& [tokens, places, begin] = value;
  f(tokens, places, begin);
}
template <class F>
void fields(Is<EngineInfo::TokenHead> auto& value, F&& f) {
  auto& [task, size, normalise, activation, left_out_first, left_out_last] = value;
  f(task, size, normalise, activation, left_out_first, left_out_last);
}
template <class F>
void fields(Is<EngineInfo> auto& value, F&& f) {
  auto& [index, engines, architecture, weight_bytes, cache_bytes, num_blocks, block_size, vocab_size,
         max_model_len, max_num_seqs, max_queued, max_logprobs, priorities, image, sound, source, task,
         pooled_size, normalise, labels, score_activation, token_heads, max_loras] = value;
  f(index, engines, architecture, weight_bytes, cache_bytes, num_blocks, block_size, vocab_size,
    max_model_len, max_num_seqs, max_queued, max_logprobs, priorities, image, sound, source, task,
    pooled_size, normalise, labels, score_activation, token_heads, max_loras);
}
template <class F>
void fields(Is<StepRecord> auto& value, F&& f) {
  auto& [number, prompt_tokens, answer_tokens, sequences, kv_tokens, pairs, began_us, forward_us,
         microseconds] = value;
  f(number, prompt_tokens, answer_tokens, sequences, kv_tokens, pairs, began_us, forward_us, microseconds);
}
template <class F>
void fields(Is<PrefixNode> auto& value, F&& f) {
  auto& [parent, blocks, used, shared] = value;
  f(parent, blocks, used, shared);
}
template <class F>
void fields(Is<PrefixTree> auto& value, F&& f) {
  auto& [nodes, left_out] = value;
  f(nodes, left_out);
}
template <class F>
void fields(Is<AdapterStats> auto& value, F&& f) {
  auto& [name, running, waiting] = value;
  f(name, running, waiting);
}
template <class F>
void fields(Is<KvTransferStats> auto& value, F&& f) {
  auto& [enabled, held_blocks, queries, hits, seconds, bytes, blocks, failures, expired] = value;
  f(enabled, held_blocks, queries, hits, seconds, bytes, blocks, failures, expired);
}
template <class F>
void fields(Is<KvTierStats> auto& value, F&& f) {
  auto& [enabled, off, blocks, block_bytes, bytes_max, stored_blocks, stored_bytes, store_seconds,
         loaded_bytes, load_seconds, evicted_blocks, dropped_stores, skipped_loads] = value;
  f(enabled, off, blocks, block_bytes, bytes_max, stored_blocks, stored_bytes, store_seconds, loaded_bytes,
    load_seconds, evicted_blocks, dropped_stores, skipped_loads);
}
template <class F>
void fields(Is<EngineStats> auto& value, F&& f) {
  auto& [engine, unfinished, running, waiting, deferred, blocks_total, blocks_used, blocks_cached,
         grammar_cache_bytes, request_bytes, adapters, healthy, hangs, presence, sleep_level, paused,
         prompt_tokens, prompt_tokens_cached, generation_tokens, prefix_queries, prefix_hits, preemptions,
         grammar_cache_hits, grammar_cache_misses, grammar_compile_us, grammar_masks, grammar_mask_ns,
         grammar_masks_deferred, step_tokens, recent_steps, drafts, draft_tokens, accepted_drafts,
         kv_transfer, kv_host_tier, kv_tier, prefixes] = value;
  f(engine, unfinished, running, waiting, deferred, blocks_total, blocks_used, blocks_cached,
    grammar_cache_bytes, request_bytes, adapters, healthy, hangs, presence, sleep_level, paused,
    prompt_tokens, prompt_tokens_cached, generation_tokens, prefix_queries, prefix_hits, preemptions,
    grammar_cache_hits, grammar_cache_misses, grammar_compile_us, grammar_masks, grammar_mask_ns,
    grammar_masks_deferred, step_tokens, recent_steps, drafts, draft_tokens, accepted_drafts, kv_transfer,
    kv_host_tier, kv_tier, prefixes);
}
template <class F>
void fields(Is<Hello> auto& value, F&& f) {
  auto& [version, num_blocks] = value;
  f(version, num_blocks);
}
template <class F>
void fields(Is<Submit> auto& value, F&& f) {
  auto& [id, request] = value;
  f(id, request);
}
template <class F>
void fields(Is<Abort> auto& value, F&& f) {
  auto& [id] = value;
  f(id);
}
template <class F>
void fields(Is<ResetPrefixCache> auto&, F&& f) {
  f();
}
template <class F>
void fields(Is<LookAtPrefixes> auto&, F&& f) {
  f();
}
template <class F>
void fields(Is<Sleep> auto&, F&& f) {
  f();
}
template <class F>
void fields(Is<WakeUp> auto&, F&& f) {
  f();
}
template <class F>
void fields(Is<Pause> auto& value, F&& f) {
  auto& [id, mode] = value;
  f(id, mode);
}
template <class F>
void fields(Is<Resume> auto&, F&& f) {
  f();
}
template <class F>
void fields(Is<Paused> auto& value, F&& f) {
  auto& [id, error] = value;
  f(id, error);
}
template <class F>
void fields(Is<Slept> auto& value, F&& f) {
  auto& [error] = value;
  f(error);
}
template <class F>
void fields(Is<AdapterSource> auto& value, F&& f) {
  auto& [name, path] = value;
  f(name, path);
}
template <class F>
void fields(Is<ChangeAdapter> auto& value, F&& f) {
  auto& [id, source, unload] = value;
  f(id, source, unload);
}
template <class F>
void fields(Is<AdapterChanged> auto& value, F&& f) {
  auto& [id, error] = value;
  f(id, error);
}
template <class F>
void fields(Is<Loading> auto& value, F&& f) {
  auto& [done, all] = value;
  f(done, all);
}
template <class F>
void fields(Is<Ready> auto& value, F&& f) {
  auto& [version, info] = value;
  f(version, info);
}
template <class F>
void fields(Is<Failed> auto& value, F&& f) {
  auto& [error] = value;
  f(error);
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void put(bool value) {
    scalar([=](char* at) { return mp_encode_bool(at, value); });
  }
  template <std::integral T>
  void put(T value) {
    if (std::cmp_less(value, 0))
      scalar([=](char* at) { return mp_encode_int(at, static_cast<std::int64_t>(value)); });
    else
      scalar([=](char* at) { return mp_encode_uint(at, static_cast<std::uint64_t>(value)); });
  }
  template <class T>
    requires std::is_enum_v<T>
  void put(T value) {
    put(std::to_underlying(value));
  }
  void put(double value) {
    scalar([=](char* at) { return mp_encode_double(at, value); });
  }
  void put(float value) {
    scalar([=](char* at) { return mp_encode_float(at, value); });
  }
  void put(const std::string& text) {
    scalar([&](char* at) { return mp_encode_binl(at, static_cast<std::uint32_t>(text.size())); });
    out_ += text;
  }
  template <class T>
  void put(const std::vector<T>& items) {
    array(items.size());
    for (const T& item : items) put(item);
  }
  template <class T, std::size_t N>
  void put(const std::array<T, N>& items) {
    array(N);
    for (const T& item : items) put(item);
  }
  template <class A, class B>
  void put(const std::pair<A, B>& pair) {
    array(2);
    put(pair.first);
    put(pair.second);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    if (value) return put(*value);
    scalar([](char* at) { return mp_encode_nil(at); });
  }
  void put(const Histogram& histogram) {
    array(2);
    put(std::vector<std::int64_t>(histogram.counts().begin(), histogram.counts().end()));
    put(histogram.sum());
  }
  template <class T>
    requires std::is_class_v<T>
  void put(const T& value) {
    fields(value, [&](const auto&... each) {
      array(sizeof...(each));
      (put(each), ...);
    });
  }
  void array(std::size_t size) {
    scalar([=](char* at) { return mp_encode_array(at, static_cast<std::uint32_t>(size)); });
  }

 private:
  template <class Encode>
  void scalar(Encode encode) {
    char bytes[16];
    out_.append(bytes, static_cast<std::size_t>(encode(bytes) - bytes));
  }

  std::string& out_;
};

// Reads what the frame's check found to be MessagePack. Once something is of another type or range than
// expected, nothing more is read and good() is false.
class Reader {
 public:
  explicit Reader(const char* at) : at_(at) {}

  bool good() const { return good_; }

  void get(bool& value) {
    if (expect(MP_BOOL)) value = mp_decode_bool(&at_);
  }
  template <std::integral T>
  void get(T& value) {
    if (good_ && mp_typeof(*at_) == MP_INT) return fit(mp_decode_int(&at_), value);
    if (expect(MP_UINT)) fit(mp_decode_uint(&at_), value);
  }
  template <class T>
    requires std::is_enum_v<T>
  void get(T& value) {
    std::underlying_type_t<T> number{};
    get(number);
    value = static_cast<T>(number);
  }
  void get(double& value) {
    if (expect(MP_DOUBLE)) value = mp_decode_double(&at_);
  }
  void get(float& value) {
    if (expect(MP_FLOAT)) value = mp_decode_float(&at_);
  }
  void get(std::string& text) {
    if (!expect(MP_BIN)) return;
    std::uint32_t size = 0;
    const char* bytes = mp_decode_bin(&at_, &size);
    text.assign(bytes, size);
  }
  template <class T>
  void get(std::vector<T>& items) {
    items.resize(array());
    for (T& item : items) get(item);
  }
  template <class T, std::size_t N>
  void get(std::array<T, N>& items) {
    if (!array_of(N)) return;
    for (T& item : items) get(item);
  }
  template <class A, class B>
  void get(std::pair<A, B>& pair) {
    if (!array_of(2)) return;
    get(pair.first);
    get(pair.second);
  }
  template <class T>
  void get(std::optional<T>& value) {
    value.reset();
    if (good_ && mp_typeof(*at_) == MP_NIL) return mp_decode_nil(&at_);
    get(value.emplace());
  }
  void get(Histogram& histogram) {
    std::vector<std::int64_t> counts;
    double sum = 0;
    if (!array_of(2)) return;
    get(counts);
    get(sum);
    good_ = good_ && histogram.assign(counts, sum);
  }
  template <class T>
    requires std::is_class_v<T>
  void get(T& value) {
    fields(value, [&](auto&... each) {
      if (array_of(sizeof...(each))) (get(each), ...);
    });
  }
  bool array_of(std::size_t size) {
    if (array() != size) good_ = false;
    return good_;
  }

 private:
  bool expect(mp_type type) {
    good_ = good_ && mp_typeof(*at_) == type;
    return good_;
  }
  // Each item has a byte at least: no size is beyond the frame.
  std::size_t array() { return expect(MP_ARRAY) ? mp_decode_array(&at_) : 0; }
  template <class Number, class T>
  void fit(Number number, T& value) {
    good_ = std::in_range<T>(number);
    if (good_) value = static_cast<T>(number);
  }

  const char* at_;
  bool good_ = true;
};

template <class Message, class Variant>
struct KindIn;
template <class Message, class... Alternatives>
struct KindIn<Message, std::variant<Alternatives...>> {
  static constexpr int find() {
    int kind = 0;
    bool found = false;
    ((found = found || std::same_as<Message, Alternatives>, kind += !found), ...);
    return found ? kind : -1;
  }
};

template <class Variant, std::size_t... Kinds>
bool read_kind(std::size_t kind, Reader& reader, Variant& message, std::index_sequence<Kinds...>) {
  return ((kind == Kinds && (reader.get(message.template emplace<Kinds>()), true)) || ...);
}

template <class Variant>
Result<Variant> read(std::string_view frame) {
  const char* end = frame.data();
  if (frame.empty() || mp_check(&end, frame.data() + frame.size()) != 0 || end != frame.data() + frame.size())
    return failure(ErrorCode::corrupt, "a frame that is no MessagePack");
  Reader reader(frame.data());
  std::size_t kind = 0;
  Result<Variant> message;
  if (reader.array_of(2)) reader.get(kind);
  if (!reader.good() ||
      !read_kind(kind, reader, *message, std::make_index_sequence<std::variant_size_v<Variant>>()) ||
      !reader.good())
    return failure(ErrorCode::corrupt, "a message that this version does not know");
  return message;
}

}  // namespace

template <class Message>
void append_frame(std::string& out, const Message& message) {
  constexpr int to = KindIn<Message, ToEngine>::find(), from = KindIn<Message, FromEngine>::find();
  const std::size_t begin = out.size();
  out.append(sizeof(std::uint32_t), '\0');
  Writer writer(out);
  writer.array(2);
  writer.put(to >= 0 ? to : from);
  writer.put(message);
  const auto size = static_cast<std::uint32_t>(out.size() - begin - sizeof(std::uint32_t));
  std::memcpy(out.data() + begin, &size, sizeof size);
}

template void append_frame(std::string&, const Hello&);
template void append_frame(std::string&, const Submit&);
template void append_frame(std::string&, const Abort&);
template void append_frame(std::string&, const ResetPrefixCache&);
template void append_frame(std::string&, const LookAtPrefixes&);
template void append_frame(std::string&, const ChangeAdapter&);
template void append_frame(std::string&, const Sleep&);
template void append_frame(std::string&, const WakeUp&);
template void append_frame(std::string&, const Pause&);
template void append_frame(std::string&, const Resume&);
template void append_frame(std::string&, const AdapterChanged&);
template void append_frame(std::string&, const Slept&);
template void append_frame(std::string&, const Paused&);
template void append_frame(std::string&, const Loading&);
template void append_frame(std::string&, const Ready&);
template void append_frame(std::string&, const Failed&);
template void append_frame(std::string&, const Output&);
template void append_frame(std::string&, const EngineStats&);

Result<ToEngine> read_to_engine(std::string_view frame) { return read<ToEngine>(frame); }
Result<FromEngine> read_from_engine(std::string_view frame) { return read<FromEngine>(frame); }

}  // namespace octavo::remote
