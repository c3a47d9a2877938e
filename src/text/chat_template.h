// A model's chat template: messages to prompt text, exactly as transformers' apply_chat_template renders it.
//
// Templates are Jinja (run by minijinja, without any host object) with trim_blocks and lstrip_blocks, loop
// controls, Python's str/list/dict methods and printing, `tojson` as json.dumps, `strftime_now`,
// `raise_exception` and
// `{% generation %}`. A template comes from strangers: every render has limits.
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
  std::size_t depth = 250;  // scopes within each other; a macro counts as four
  // A render may execute this number of instructions and build this number of bytes of text and lists ..
  std::uint64_t fuel = 200'000;
  std::uint64_t built_bytes = 16u << 20;
  // .. and these in addition for each byte of its input.
  std::uint64_t fuel_per_input_byte = 64;
  std::uint64_t built_bytes_per_input_byte = 1024;
};

// Input of a template, as JSON texts; an empty one is null, and `messages` must be an array of objects.
struct ChatInput {
  std::string_view messages;
  std::string_view tools = {};
  std::string_view documents = {};
  std::string_view kwargs = {};  // an object: chat_template_kwargs
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // leave the last message open: the model continues it
  std::chrono::system_clock::time_point now =
      std::chrono::system_clock::now();  // for strftime_now, in local time
};

// Whether a template prints messages that not every template prints.
struct TemplateHabits {
  bool takes_parts = false;      // the template reads lists of parts
  bool knows_developer = false;  // the template has the role `developer`
  bool system_anywhere = false;  // prints system messages wherever they are
};

// Immutable; any number of threads may render with one.
class ChatTemplate {
 public:
  // Errors: invalid_argument on field "chat_template", with the line.
  static Result<ChatTemplate> compile(std::string_view source, std::span<const SpecialToken> special_tokens,
                                      const ChatTemplateLimits& limits = {});

  // Errors: invalid_argument on field "messages": what the template raised, an input that is not the JSON it
  // should be, a reserved name among the kwargs, or a limit.
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
