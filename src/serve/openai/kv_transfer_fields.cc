#include "serve/openai/kv_transfer_fields.h"

#include <boost/json/array.hpp>
#include <boost/json/value_from.hpp>

namespace octavo::openai {

namespace json = boost::json;

namespace {

constexpr std::string_view kField = "kv_transfer_params";
constexpr std::size_t kTextMax = 1024;

Result<> read_text(Fields& f, std::string_view name, std::string& out) {
  TRY_VOID(f.text(name, out));
  if (out.size() > kTextMax)
    return invalid(f.full_name(name), "must have at most {} bytes, got {}", kTextMax, out.size());
  return {};
}

// Reads remote_block_ids: for each cache group a list of ids, or only one list of ids if there is one group.
Result<> read_block_ids(Fields& f, int blocks_max, KvTransferParams& out) {
  TRY(const json::array* groups, f.array("remote_block_ids"));
  if (groups == nullptr || groups->empty()) return {};
  const std::string field = f.full_name("remote_block_ids");
  const auto read = [&](const json::array& ids) -> Result<> {
    if (ids.size() > static_cast<std::size_t>(blocks_max))
      return invalid(field, "must have at most {} blocks, got {}", blocks_max, ids.size());
    std::vector<std::int64_t>& group = out.remote_block_ids.emplace_back();
    for (const json::value& id : ids) {
      if (!id.is_int64()) return invalid(field, "must be an array of arrays of integers");
      group.push_back(id.get_int64());
    }
    return {};
  };
  if (!groups->front().is_array()) return read(*groups);
  for (const json::value& group : *groups) {
    if (!group.is_array()) return invalid(field, "must be an array of arrays of integers");
    TRY_VOID(read(group.get_array()));
    if (out.remote_block_ids.size() > 64) return invalid(field, "must have at most 64 cache groups");
  }
  return {};
}

}  // namespace

Result<std::optional<KvTransferParams>> read_kv_transfer(Fields& fields, int blocks_max) {
  TRY(const json::object* object, fields.object(kField));
  if (object == nullptr) return std::nullopt;
  Fields f(*object, std::string(kField) + ".");
  KvTransferParams params;
  TRY_VOID(f.boolean("do_remote_prefill", params.do_remote_prefill));
  TRY_VOID(f.boolean("do_remote_decode", params.do_remote_decode));
  TRY_VOID(read_text(f, "remote_engine_id", params.remote_engine_id));
  TRY_VOID(read_text(f, "remote_request_id", params.remote_request_id));
  TRY_VOID(read_text(f, "remote_host", params.remote_host));
  TRY_VOID(f.integer("remote_port", params.remote_port, 0, 65'535));
  TRY_VOID(read_block_ids(f, blocks_max, params));
  int tokens = 0;
  TRY_VOID(f.integer("remote_num_tokens", tokens, 0));
  params.remote_num_tokens = tokens;
  if (!params.do_remote_prefill && !params.do_remote_decode) return std::nullopt;
  return params;
}

Result<std::vector<std::int32_t>> read_forwarded_prompt(Fields& fields, int vocab_size) {
  std::vector<std::int32_t> ids;
  TRY(const json::object* object, fields.object(kField));
  const json::value* given = object ? object->if_contains("prompt_token_ids") : nullptr;
  if (!given || given->is_null()) return ids;
  const std::string field = fmt::format("{}.prompt_token_ids", kField);
  if (!given->is_array() || given->get_array().empty())
    return invalid(field, "must be a list of at least one token id");
  for (const json::value& item : given->get_array()) {
    TRY(const std::int64_t id, integer_in(item, field, 0, vocab_size - 1));
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

json::object kv_transfer_json(const KvTransferParams& params) {
  return {{"do_remote_prefill", params.do_remote_prefill},
          {"do_remote_decode", params.do_remote_decode},
          {"remote_block_ids", json::value_from(params.remote_block_ids)},
          {"remote_engine_id", params.remote_engine_id},
          {"remote_request_id", params.remote_request_id},
          {"remote_host", params.remote_host},
          {"remote_port", params.remote_port},
          {"tp_size", 1},
          {"remote_num_tokens", params.remote_num_tokens}};
}

}  // namespace octavo::openai
