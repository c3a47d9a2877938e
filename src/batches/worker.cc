#include "batches/worker.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <unordered_set>
#include <utility>

#include "base/exact_json.h"
#include "base/log.h"
#include "batches/answers.h"

namespace octavo::batches {

namespace json = boost::json;

namespace {

constexpr int kIdleMs = 60'000;
constexpr int kBusyMs = 100;             // milliseconds between two checks for free capacity
constexpr std::size_t kErrorsMax = 100;  // maximum number of entries in a batch's `errors`

struct Checked {
  std::int64_t total = 0;
  std::vector<LineAnswer> refused{};  // answers to invalid lines
  json::array errors{};               // entries for the batch's `errors`

  void refuse(std::int64_t number, const std::string& custom_id, std::string_view code, const Error& error) {
    const std::string message = error.field.empty() ? error.message : error.field + ": " + error.message;
    json::object shown{{"code", code}, {"line", number}, {"message", message}, {"param", nullptr}};
    if (!error.field.empty()) shown["param"] = error.field;
    refused.push_back({.line = number, .custom_id = custom_id, .body = exact_json_text(shown)});
    if (errors.size() < kErrorsMax) errors.push_back(std::move(shown));
  }
};

Result<Checked> check_input(LineReader lines, const std::string& endpoint) {
  Checked checked;
  std::unordered_set<std::string> ids;
  while (const auto text = lines.next()) {
    if (++checked.total > kLinesMax) return checked;
    std::string custom_id;
    const Result<Line> line = read_line(text->text, custom_id);
    if (!line)
      checked.refuse(text->number, custom_id, "invalid_line", line.error());
    else if (line->url != endpoint)
      checked.refuse(text->number, custom_id, "mismatched_url",
                     {ErrorCode::invalid_argument,
                      fmt::format("must be the endpoint of the batch, {}", endpoint), "url"});
    else if (!ids.insert(custom_id).second)
      checked.refuse(text->number, custom_id, "duplicate_custom_id",
                     {ErrorCode::invalid_argument, "is already used in an earlier line", "custom_id"});
  }
  if (!lines.complete()) return failure(ErrorCode::io, "cannot read the input file");
  return checked;
}

std::string single_error(std::string_view code, std::string message) {
  return exact_json_text(json::array{
      json::object{{"code", code}, {"line", nullptr}, {"message", std::move(message)}, {"param", nullptr}}});
}

}  // namespace

Worker::Worker(std::shared_ptr<Store> store, HostPtr host)
    : store_(std::move(store)),
      host_(std::move(host)),
      runner_(host_, http::Request::Origin::background),
      thread_([this] { run(); }) {}

void Worker::wake() {
  news_ = true;
  runner_.wake();
}

void Worker::stop() {
  stopping_ = true;
  runner_.wake();
  if (thread_.joinable()) thread_.join();
}

void Worker::run() {
  while (!stopping_) {
    if (news_.exchange(false))
      if (const auto done = refresh(); !done) log_error("batches: {}", done.error().message);
    advance();
    take(runner_.wait(active_.empty() && unsaved_.empty() ? kIdleMs : kBusyMs));
  }
  save_answers();
  runner_.close_all();
}

Result<> Worker::refresh() {
  TRY(const std::vector<Batch> unfinished, store_->unfinished());
  for (const Batch& batch : unfinished) {
    const auto known = std::ranges::find(active_, batch.id, [](const Active& a) { return a.batch.id; });
    if (known == active_.end()) {
      active_.push_back({.batch = batch});
    } else {
      known->batch = batch;
    }
  }
  return {};
}

void Worker::advance() {
  save_answers();
  for (auto active = active_.begin(); active != active_.end() && unsaved_.empty();) {
    const auto done = advance(*active);
    const bool ended = active->exhausted && active->open == 0;
    if (!done) {
      log_error("batch {}: {}; the batch continues when the server starts again", active->batch.id,
                done.error().message);
      runner_.close(active->batch.id);
    }
    active = ended || !done ? active_.erase(active) : std::next(active);
  }
}

Result<> Worker::advance(Active& active) {
  if (active.batch.status == kValidating) TRY_VOID(validate(active));
  if (active.batch.ended()) return {};
  if (active.batch.status == kCancelling) end_early(active, kCancelled);
  if (active.batch.expires_at() <= unix_time()) end_early(active, kExpired);
  TRY_VOID(start_lines(active));
  if (!active.exhausted || active.open > 0) return {};
  log_info("batch {}: {}", active.batch.id, active.end);
  return finish_batch(*store_, active.batch.id, active.end, active.errors);
}

void Worker::end_early(Active& active, std::string_view status) {
  runner_.close(active.batch.id);
  active.open = 0;
  active.exhausted = true;
  active.end = status;
}

void Worker::fail(Active& active, std::string_view code, std::string message) {
  log_error("batch {}: {}", active.batch.id, message);
  active.errors = single_error(code, std::move(message));
  end_early(active, kFailed);
}

// Stores error answers for the invalid lines. If no line is valid, the batch fails.
Result<> Worker::validate(Active& active) {
  const std::string& id = active.batch.id;
  const auto fail = [&](const std::string& errors) {
    active.batch.status = kFailed;
    active.exhausted = true;
    log_info("batch {}: the input file is invalid", id);
    return fail_batch(*store_, id, errors);
  };
  LineReader input(store_->path_of(active.batch.input_file));
  if (!input.is_open()) return fail(single_error("missing_file", "the input file is missing"));
  TRY(Checked checked, check_input(std::move(input), active.batch.endpoint));
  if (checked.total > kLinesMax)
    return fail(single_error("too_many_lines",
                             fmt::format("the input file has more than {} lines: split it", kLinesMax)));
  if (checked.total == 0) return fail(single_error("empty_file", "the input file has no lines"));
  const std::string errors = checked.errors.empty() ? "" : exact_json_text(checked.errors);
  if (std::ssize(checked.refused) == checked.total) return fail(errors);
  for (LineAnswer& refused : checked.refused) refused.batch = id;
  TRY_VOID(store_->add_answers(checked.refused));
  TRY(active.batch, store_->change(id, [&](Batch& batch) -> Result<> {
    if (batch.status == kValidating) batch.status = kInProgress;
    batch.in_progress_at = unix_time();
    batch.total = checked.total;
    batch.errors = errors;
    return {};
  }));
  return {};
}

Result<> Worker::start_lines(Active& active) {
  while (!active.exhausted && has_room(active.batch.owner)) {
    if (!active.lines) {
      TRY(active.answered, store_->answered(active.batch.id));
      active.lines.emplace(store_->path_of(active.batch.input_file));
      if (!active.lines->is_open()) {
        fail(active, "missing_file", "the input file is missing");
        return {};
      }
    }
    const auto text = active.lines->next();
    if (!text) {
      if (!active.lines->complete()) return failure(ErrorCode::io, "cannot read the input file");
      active.exhausted = true;
      active.lines.reset();
      return {};
    }
    if (active.answered.contains(text->number)) continue;
    if (const auto space = store_->check_space(active.batch.owner); !space) {
      fail(active, "storage_full", space.error().message);
      return {};
    }
    std::string custom_id;
    TRY(Line line, read_line(text->text, custom_id));
    runner_.start({.batch = active.batch.id, .number = text->number, .line = std::move(line)},
                  line_peer(active.batch.owner));
    ++active.open;
  }
  return {};
}

bool Worker::has_room(const std::string& owner) const {
  return runner_.open() == 0 || host_->has_room(runner_.open(), owner);
}

void Worker::take(std::vector<LineRunner::Ended> ended) {
  for (LineRunner::Ended& each : ended) {
    const auto owner = std::ranges::find(active_, each.job.batch, [](const Active& a) { return a.batch.id; });
    if (owner == active_.end()) continue;
    --owner->open;
    unsaved_.push_back({.batch = each.job.batch,
                        .line = each.job.number,
                        .custom_id = each.job.line.custom_id,
                        .status = each.response.status,
                        .body = std::move(each.response.body)});
  }
  save_answers();
}

// While answers cannot be saved, no line starts and no batch ends.
void Worker::save_answers() {
  if (unsaved_.empty()) return;
  const auto saved = store_->add_answers(unsaved_);
  if (saved) return unsaved_.clear();
  log_error("batches: {} answers wait to be stored: {}", unsaved_.size(), saved.error().message);
}

}  // namespace octavo::batches
