// Responses of /v1/responses with tools on MCP servers. When the model calls such a tool, Octavo calls the
// MCP server and continues the response with the result.
#pragma once

#include <boost/json/object.hpp>
#include <memory>

#include "base/error.h"
#include "http/exchange.h"
#include "serve/service.h"

namespace octavo::mcp {

// Answers the exchange later. Each turn of the model is a request to routes::create_response. Returns an
// error with the field's name if the body is invalid.
Result<> respond_with_servers(const std::shared_ptr<Service>& service,
                              const std::shared_ptr<http::Exchange>& exchange, boost::json::object body);

}  // namespace octavo::mcp
