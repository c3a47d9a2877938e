// `keep_alive` of Ollama's requests: how long the model stays loaded after the request. Source: docs/api.md
// and docs/faq.md in Ollama's repository.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "serve/ollama/reply.h"

namespace octavo::ollama {

// Reads a number of seconds, or a duration in Go's format ("10m", "1h30m", "-1s"). Returns microseconds. 0:
// the model is unloaded after the request; negative: it stays loaded.
Result<std::int64_t> keep_alive_us(const boost::json::value& value);

// Returns the field of a body; nullopt: not given.
Result<std::optional<std::int64_t>> read_keep_alive(const boost::json::object& body);

// Returns the shape of the reply if a body for /api/chat or /api/generate has no prompt: the request then
// only loads or unloads the model. Returns nullopt for other requests.
std::optional<Shape> hold_of(std::string_view path, const boost::json::object& body);

}  // namespace octavo::ollama
