// Backends of `octavo chat`: an engine in this process, or a server.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// One answer and its figures.
struct Turn {
  std::string text;
  int tokens = 0;
  int prompt_tokens = 0;
  int cached_tokens = 0;
  double first_s = 0;  // seconds until the first piece of text
  double all_s = 0;
};

class ChatBackend {
 public:
  virtual ~ChatBackend() = default;
  // Returns the name of the model, for the greeting.
  virtual std::string name() const = 0;
  // Answers a body of /v1/chat/completions. `show` receives the pieces of text, and returns false to stop the
  // answer.
  virtual Result<Turn> answer(const boost::json::object& body,
                              const std::function<bool(std::string_view)>& show) = 0;
};

// Errors: the model has no chat template.
Result<std::unique_ptr<ChatBackend>> local_chat(std::unique_ptr<Runtime> runtime);

// url: "host:port", optionally with "http://" and "/v1". Errors: an invalid URL, no response.
Result<std::unique_ptr<ChatBackend>> remote_chat(const std::string& url, const std::string& api_key);

}  // namespace octavo
