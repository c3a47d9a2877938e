#include "traffic/load_run.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <future>

#include "base/check.h"
#include "base/clock.h"
#include "http/sse.h"

namespace octavo::traffic {
namespace {

namespace json = boost::json;

constexpr int kTimeoutMs = 6 * 3'600'000;  // limit for a response, as in vLLM

const json::value* at_path(const json::value& root, std::string_view pointer) {
  boost::system::error_code missing;
  return root.find_pointer(pointer, missing);
}

class Reader {
 public:
  explicit Reader(LoadAnswer& answer) : answer_(answer) {}

  void head(int status) { status_ = status; }

  void body(std::string_view piece) {
    if (status_ != 200) {
      answer_.error += piece.substr(0, std::min<std::size_t>(piece.size(), 1024));
      return;
    }
    for (const std::string& event : events_.push(piece)) take(event);
  }

  void end(const Result<>& result) {
    AnswerTimes& times = answer_.times;
    if (!result) {
      answer_.error = result.error().message;
    } else if (status_ != 200) {
      answer_.error = fmt::format("HTTP {}: {}", status_, answer_.error);
    } else if (answer_.error.empty() && !done_) {
      answer_.error = "the stream ended before [DONE]";
    } else if (answer_.error.empty() && times.first_us == 0) {
      answer_.error = "the answer has no tokens";
    }
    times.completed = answer_.error.empty();
    if (times.output_tokens == 0) times.output_tokens = static_cast<int>(answer_.gaps_us.size()) + 1;
  }

 private:
  void take(const std::string& event) {
    if (event == "[DONE]") {
      done_ = true;
      return;
    }
    boost::system::error_code wrong;
    const json::value chunk = json::parse(event, wrong);
    if (wrong) {
      answer_.error = "an event is not JSON";
      return;
    }
    if (const json::value* error = at_path(chunk, "/error/message"); error != nullptr && error->is_string())
      answer_.error = error->get_string();
    const auto count = [&](std::string_view pointer, int& to) {
      const json::value* value = at_path(chunk, pointer);
      if (value != nullptr && value->is_int64()) to = static_cast<int>(value->get_int64());
    };
    count("/usage/prompt_tokens", answer_.times.input_tokens);
    count("/usage/completion_tokens", answer_.times.output_tokens);
    const json::value* choices = at_path(chunk, "/choices");
    if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) return;
    piece(choices->get_array().front());
  }

  // Records a chunk with a choice. A chunk without text also counts, because its tokens may be a part of a
  // character. A chunk with only the role does not count.
  void piece(const json::value& choice) {
    if (const json::value* role = at_path(choice, "/delta/role"); role != nullptr && role->is_string()) {
      const json::value* content = at_path(choice, "/delta/content");
      if (content == nullptr || !content->is_string() || content->get_string().empty()) return;
    }
    const std::int64_t now = now_us();
    AnswerTimes& times = answer_.times;
    if (times.first_us == 0) {
      times.first_us = now;
    } else {
      answer_.gaps_us.push_back(now - times.last_us);
    }
    times.last_us = now;
    for (const std::string_view pointer :
         {"/text", "/delta/content", "/delta/reasoning", "/delta/reasoning_content"}) {
      const json::value* text = at_path(choice, pointer);
      if (text != nullptr && text->is_string()) answer_.text += std::string_view(text->get_string());
    }
  }

  LoadAnswer& answer_;
  http::SseReader events_;
  int status_ = 0;
  bool done_ = false;
};

std::shared_ptr<const std::string> body_of(const Prompt& prompt, const LoadOptions& options) {
  json::object body{{"model", options.model}, {"stream", true}};
  body["stream_options"] = {{"include_usage", true}};
  if (options.chat) {
    body["messages"] = json::array{{{"role", "user"}, {"content", prompt.text}}};
    body["max_completion_tokens"] = prompt.output_tokens;
  } else {
    body["max_tokens"] = prompt.output_tokens;
    if (prompt.ids.empty()) {
      body["prompt"] = prompt.text;
    } else {
      body["prompt"] = json::array(prompt.ids.begin(), prompt.ids.end());
    }
  }
  for (const auto& [key, value] : options.body) body[key] = value;
  return std::make_shared<const std::string>(json::serialize(body));
}

// The client's only thread calls all functions.
class Run {
 public:
  Run(std::span<const Prompt> prompts, std::span<const std::int64_t> due_us, const LoadOptions& options,
      const std::function<void(std::size_t)>& ended, LoadResult& result)
      : prompts_(prompts), due_us_(due_us), options_(options), ended_(ended), result_(result) {}

  void go() {
    loop_.post([this] {
      started_us_ = now_us();
      send_due();
    });
    over_.get_future().wait();
    result_.seconds = static_cast<double>(now_us() - started_us_) * 1e-6;
  }

 private:
  void send_due() {
    while (next_ < prompts_.size() && (options_.max_concurrency == 0 || open_ < options_.max_concurrency)) {
      const std::int64_t left_us = due_us_[next_] - (now_us() - started_us_);
      if (left_us > 0) {
        if (waiting_) return;
        waiting_ = true;
        loop_.after(static_cast<int>(std::min<std::int64_t>((left_us + 999) / 1000, 1'000)), [this] {
          waiting_ = false;
          send_due();
        });
        return;
      }
      send(next_++);
    }
  }

  void send(std::size_t i) {
    ++open_;
    LoadAnswer& answer = result_.answers[i];
    answer.times.input_tokens = prompts_[i].input_tokens;
    http::CallRequest request{.address = options_.server,
                              .method = "POST",
                              .target = options_.endpoint,
                              .headers = options_.headers,
                              .body = body_of(prompts_[i], options_),
                              .timeout_ms = kTimeoutMs};
    request.headers.add("Content-Type", "application/json");
    auto reader = std::make_shared<Reader>(answer);
    answer.times.sent_us = now_us();
    loop_.call(std::move(request), {.head = [reader](http::Response head) { reader->head(head.status); },
                                    .body = [reader](std::string_view piece) { reader->body(piece); },
                                    .end =
                                        [this, reader](Result<> result) {
                                          reader->end(result);
                                          end();
                                        }});
  }

  void end() {
    --open_;
    ended_(++ended_count_);
    if (ended_count_ == prompts_.size()) {
      over_.set_value();
    } else {
      send_due();
    }
  }

  std::span<const Prompt> prompts_;
  std::span<const std::int64_t> due_us_;
  const LoadOptions& options_;
  const std::function<void(std::size_t)>& ended_;
  LoadResult& result_;
  std::promise<void> over_;
  std::int64_t started_us_ = 0;
  std::size_t next_ = 0;
  std::size_t ended_count_ = 0;
  int open_ = 0;
  bool waiting_ = false;
  // After all members that the client's thread uses, so that the thread stops before they are destroyed.
  http::AsyncClient client_{{.idle_connections_max = 4096}};
  http::ClientLoop& loop_ = client_.next_loop();
};

}  // namespace

LoadResult run_load(std::span<const Prompt> prompts, std::span<const std::int64_t> due_us,
                    const LoadOptions& options, const std::function<void(std::size_t)>& ended) {
  CHECK(prompts.size() == due_us.size());
  LoadResult result;
  result.answers.resize(prompts.size());
  if (!prompts.empty()) Run(prompts, due_us, options, ended, result).go();
  return result;
}

}  // namespace octavo::traffic
