// Backends of `octavo chat`: an engine in this process, or a server.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "app/chat_turn.h"
#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

class ChatBackend {
 public:
  virtual ~ChatBackend() = default;
  // Name of the model, for the greeting.
  virtual std::string name() const = 0;
  // body: request for /v1/chat/completions.
  virtual Result<Turn> answer(const boost::json::object& body, const ShowPiece& show) = 0;
};

// Returns an error if the model has no chat template.
Result<std::unique_ptr<ChatBackend>> local_chat(std::unique_ptr<Runtime> runtime);

// url: "host:port", optionally with "http://" and "/v1". Returns an error if the URL is invalid or the
// server does not respond.
Result<std::unique_ptr<ChatBackend>> remote_chat(const std::string& url, const std::string& api_key);

}  // namespace octavo
