// kv_transfer_params of requests and replies, as vLLM's NixlConnector has them.
#pragma once

#include <boost/json/object.hpp>
#include <optional>

#include "base/error.h"
#include "request/kv_transfer.h"
#include "serve/openai/request_fields.h"

namespace octavo::openai {

// Nothing: the field is absent or null, or asks for nothing. Fields of other connectors are passed over.
// Errors name the field. blocks_max: that a prompt can have.
Result<std::optional<KvTransferParams>> read_kv_transfer(Fields& fields, int blocks_max);

boost::json::object kv_transfer_json(const KvTransferParams& params);

}  // namespace octavo::openai
