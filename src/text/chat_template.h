// Renders a model's chat template: converts messages to the prompt, exactly as transformers'
// apply_chat_template does.
//
// Templates are written in Jinja. minijinja runs them with the settings and functions that transformers has:
// trim_blocks and lstrip_blocks, loop controls, Python's methods and printing of str, list and dict, `tojson`
// like json.dumps, `strftime_now`, `raise_exception` and `{% generation %}`. Templates are untrusted: they
// cannot access the host, and every render has limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer_config.h"

namespace octavo {

namespace bridge {
struct TemplateHandle;
}

struct ChatTemplateLimits {
  std::size_t source_bytes = 128u << 10;
  std::size_t output_bytes = 32u << 20;
  std::size_t depth = 250;  // nested scopes; a macro counts as four
  // fuel: number of instructions. built_bytes: bytes of text and lists that a render creates.
  std::uint64_t fuel = 200'000;
  std::uint64_t built_bytes = 16u << 20;
  // Additions to these limits for each byte of the input.
  std::uint64_t fuel_per_input_byte = 64;
  std::uint64_t built_bytes_per_input_byte = 1024;
};

// Input of a template as JSON texts; "": null. messages: array of objects.
struct ChatInput {
  std::string_view messages;
  std::string_view tools = {};
  std::string_view documents = {};
  std::string_view kwargs = {};  // JSON object: chat_template_kwargs of the request
  bool add_generation_prompt = true;
  // true: the last message stays open, so the model continues it
  bool continue_final_message = false;
  std::chrono::system_clock::time_point now =
      // for strftime_now, in local time
      std::chrono::system_clock::now();
};

// The features that a template supports.
struct TemplateHabits {
  // whether the content of a message may be a list of parts
  bool takes_parts = false;
  bool knows_developer = false;
  bool system_anywhere = false;  // whether system messages may follow the first message
  bool takes_system = false;     // whether the first message may be a system message
  bool reads_tools = false;
  bool reads_calls = false;  // calls in messages of the assistant
};

// A compiled template. It is immutable; several threads may render with it at the same time.
class ChatTemplate {
 public:
  // Returns invalid_argument on "chat_template", with the line number, if the template is invalid.
  static Result<ChatTemplate> compile(std::string_view source, std::span<const SpecialToken> special_tokens,
                                      const ChatTemplateLimits& limits = {});

  // Returns invalid_argument on "messages" if the template raises an exception, the input has the wrong
  // JSON type, kwargs has a reserved name, or the render exceeds a limit.
  Result<std::string> render(const ChatInput& input) const;

  const TemplateHabits& habits() const { return habits_; }

 private:
  struct Free {
    void operator()(bridge::TemplateHandle* handle) const;
  };

  explicit ChatTemplate(bridge::TemplateHandle* handle) : handle_(handle) {}

  std::unique_ptr<bridge::TemplateHandle, Free> handle_;
  TemplateHabits habits_;
};

}  // namespace octavo
