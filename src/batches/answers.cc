#include "batches/answers.h"

#include <boost/json/object.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/exact_json.h"
#include "batches/batch_files.h"
#include "batches/line.h"

namespace octavo::batches {

namespace json = boost::json;

namespace {

constexpr int kAnswersAtOnce = 256;

// Reads the stored answers of a batch in ascending order of line numbers.
class AnswerReader {
 public:
  AnswerReader(Store& store, std::string batch) : store_(store), batch_(std::move(batch)) {}

  // Returns the answer to a line, or nullopt if the line has none. The caller must request lines in
  // ascending order.
  Result<std::optional<LineAnswer>> of_line(std::int64_t line) {
    if (next_ == answers_.size()) {
      TRY(answers_, store_.answers_after(batch_, line - 1, kAnswersAtOnce));
      next_ = 0;
    }
    if (next_ == answers_.size() || answers_[next_].line != line) return std::nullopt;
    return std::move(answers_[next_++]);
  }

 private:
  Store& store_;
  const std::string batch_;
  std::vector<LineAnswer> answers_;
  std::size_t next_ = 0;
};

std::string unanswered(std::string_view status) {
  const auto error = [](std::string_view code, std::string_view message) {
    return exact_json_text(json::object{{"code", code}, {"message", message}});
  };
  if (status == kExpired)
    return error("batch_expired", "the completion window ended before this request ran");
  if (status == kFailed)
    return error("batch_failed", "the batch failed before this request ran: see its errors");
  return error("batch_cancelled", "the batch was cancelled before this request ran");
}

// Returns a result line in Anthropic's format: {"custom_id", "result"}.
std::string message_line(const LineAnswer& answer, std::string_view status) {
  json::object result;
  if (answer.status == 200) {
    result = {{"type", "succeeded"}, {"message", json_or_text(answer.body)}};
  } else if (answer.body.empty()) {
    result = {{"type", status == kExpired ? "expired" : "canceled"}};
  } else {
    result = {{"type", "errored"}, {"error", json_or_text(answer.body)}};
  }
  return exact_json_text(json::object{{"custom_id", answer.custom_id}, {"result", std::move(result)}});
}

struct OutputFile {
  OutputFile(const Store& store, const Batch& batch, std::string_view purpose, std::string_view kind)
      : record{.id = "file-" + random_hex(),
               .owner = batch.owner,
               .filename = fmt::format("{}_{}.jsonl", batch.id, kind),
               .purpose = std::string(purpose)},
        content(store.path_of(record.id)) {}

  void add(const std::string& line) { content.write(line + "\n"); }
  bool empty() const { return content.bytes() == 0; }

  StoredFile record;
  DurableFile content;
};

// Adds a record for the output file and returns the file's id. If the file is empty, returns "" and adds no
// record.
Result<std::string> keep(OutputFile& file, const Batch& batch, std::vector<StoredFile>& files) {
  if (file.empty()) return "";
  TRY_VOID(file.content.commit());
  file.record.bytes = file.content.bytes();
  file.record.created_at = unix_time();
  if (batch.output_keep_s > 0) file.record.expires_at = file.record.created_at + batch.output_keep_s;
  files.push_back(file.record);
  return file.record.id;
}

struct Output {
  Batch& batch;
  std::string_view status;
  OutputFile& output;
  OutputFile& errors;

  void add(LineAnswer answer, bool answered) {
    if (answered) ++(answer.status == 200 ? batch.completed : batch.failed);
    if (batch.protocol == kAnthropic) return output.add(message_line(answer, status));
    if (!answered) answer.body = unanswered(status);
    (answer.status == 200 ? output : errors).add(output_line(answer.custom_id, answer.status, answer.body));
  }
};

Result<> write_answers(Store& store, Output& out) {
  std::int64_t last = 0;
  while (true) {
    TRY(std::vector<LineAnswer> answers, store.answers_after(out.batch.id, last, kAnswersAtOnce));
    if (answers.empty()) return {};
    last = answers.back().line;
    for (LineAnswer& answer : answers) out.add(std::move(answer), true);
  }
}

// Writes one output line for each input line, and counts completed and failed lines.
Result<> write_lines(Store& store, Output out) {
  Batch& batch = out.batch;
  batch.completed = batch.failed = 0;
  AnswerReader answers(store, batch.id);
  LineReader lines(store.path_of(batch.input_file));
  if (!lines.is_open()) return write_answers(store, out);
  batch.total = 0;
  while (const auto text = lines.next()) {
    ++batch.total;
    TRY(std::optional<LineAnswer> answer, answers.of_line(text->number));
    const bool answered = answer.has_value();
    if (!answer) {
      answer.emplace();
      (void)read_line(text->text, answer->custom_id);
    }
    out.add(*std::move(answer), answered);
  }
  if (lines.complete()) return {};
  return failure(ErrorCode::io, "cannot read the whole file {}", store.path_of(batch.input_file));
}

}  // namespace

Result<> finish_batch(Store& store, const std::string& batch_id, std::string_view status,
                      const std::string& problems) {
  TRY(Batch batch, store.change(batch_id, [&](Batch& now) -> Result<> {
    if (now.status == kCancelling) status = kCancelled;
    if (now.finalizing_at == 0) now.finalizing_at = unix_time();
    if (now.status == kInProgress) now.status = kFinalizing;
    if (!problems.empty()) now.errors = problems;
    return {};
  }));
  const bool messages = batch.protocol == kAnthropic;
  OutputFile output(store, batch, messages ? kMessages : kOutput, "output");
  OutputFile errors(store, batch, kOutput, "error");
  TRY_VOID(write_lines(store, {batch, status, output, errors}));
  std::vector<StoredFile> files;
  const auto ended = [&]() -> Result<> {
    TRY(batch.output_file, keep(output, batch, files));
    TRY(batch.error_file, keep(errors, batch, files));
    batch.status = status;
    batch.ended_at = unix_time();
    return store.finish(batch, files);
  }();
  if (!ended)
    for (const StoredFile& file : files) (void)store.discard_file(file.id);
  return ended;
}

Result<> fail_batch(Store& store, const std::string& batch_id, const std::string& errors) {
  TRY(Batch batch, store.change(batch_id, [&](Batch& now) -> Result<> {
    now.status = kFailed;
    now.ended_at = unix_time();
    now.errors = errors;
    return {};
  }));
  return store.finish(batch, {});
}

}  // namespace octavo::batches
