// A model's chat template: converts messages to prompt text, exactly as transformers' apply_chat_template
// does.
//
// Templates are written in Jinja and run by minijinja, without any host object. They have trim_blocks and
// lstrip_blocks, loop controls, Python's str/list/dict methods and printing, `tojson` as json.dumps,
// `strftime_now`, `raise_exception` and `{% generation %}`. A template is not trusted: every render has
// limits.
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
  std::size_t depth = 250;  // number of nested scopes; a macro counts as four
  // Number of instructions, and of bytes of text and lists, that a render may use.
  std::uint64_t fuel = 200'000;
  std::uint64_t built_bytes = 16u << 20;
  // instructions that are added to `fuel` for each byte of the input
  std::uint64_t fuel_per_input_byte = 64;
  std::uint64_t built_bytes_per_input_byte = 1024;
};

// Input of a template, as JSON texts. An empty text means null; `messages` must be an array of objects.
struct ChatInput {
  std::string_view messages;
  std::string_view tools = {};
  std::string_view documents = {};
  std::string_view kwargs = {};  // an object: chat_template_kwargs
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // whether the last message stays open, so that the model continues it
  std::chrono::system_clock::time_point now =
      std::chrono::system_clock::now();  // time that strftime_now returns, in local time
};

// Properties of the messages that a template supports.
struct TemplateHabits {
  bool takes_parts = false;      // whether a message's content may be a list of parts
  bool knows_developer = false;  // the template has the role `developer`
  bool system_anywhere = false;  // system messages may be at any position
};

// A compiled template. Immutable; several threads may render with it at the same time.
class ChatTemplate {
 public:
  // Errors: invalid_argument on field "chat_template", with the line number.
  static Result<ChatTemplate> compile(std::string_view source, std::span<const SpecialToken> special_tokens,
                                      const ChatTemplateLimits& limits = {});

  // Errors: invalid_argument on field "messages". Its causes: an exception raised by the template, input of
  // another JSON type, a reserved name in kwargs, or a limit.
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
