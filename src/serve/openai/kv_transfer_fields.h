// Reads and writes kv_transfer_params in the format of vLLM's NixlConnector.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "openai/request_fields.h"
#include "request/kv_transfer.h"

namespace octavo::openai {

// Reads kv_transfer_params. Returns nullopt if the field is absent, null or has no effect. Ignores the fields
// of other connectors. Returns an error with the field's name if a value is invalid. blocks_max: maximum
// number of blocks of a prompt.
Result<std::optional<KvTransferParams>> read_kv_transfer(Fields& fields, int blocks_max);

// Reads "prompt_token_ids". The prefill server sends the prompt's tokens in it, so that the decode server
// does not tokenise the prompt again. Returns an empty vector if the field is absent.
Result<std::vector<std::int32_t>> read_forwarded_prompt(Fields& fields, int vocab_size);

boost::json::object kv_transfer_json(const KvTransferParams& params);

}  // namespace octavo::openai
