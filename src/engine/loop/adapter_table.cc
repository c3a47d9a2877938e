#include "engine/loop/adapter_table.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

constexpr std::size_t kNamesMax = 4096;
constexpr std::size_t kChangesAtOnce = 8;  // maximum number of matrices that are copied between two steps

}  // namespace

AdapterTable::AdapterTable(AdapterSlots* slots, int slot_count, std::function<void()> wake)
    : slots_(slots),
      wake_(std::move(wake)),
      loaded_(static_cast<std::size_t>(slots != nullptr ? slot_count : 0)) {
  if (!loaded_.empty()) thread_ = std::thread([this] { run(); });
}

AdapterTable::~AdapterTable() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  if (thread_.joinable()) thread_.join();
  for (Entry& entry : entries_) complete(entry, failure(ErrorCode::unavailable, "the engine was stopped"));
}

void AdapterTable::load(AdapterSource source, AdapterDone done) {
  if (loaded_.empty())
    return done(failure(ErrorCode::unsupported, "adapters need a server with --enable-lora"));
  if (entries_.size() >= kNamesMax)
    return done(failure(ErrorCode::resource_exhausted,
                        "{} adapters are loaded, which is the limit ({}): unload one first", entries_.size(),
                        kNamesMax));
  if (Entry* old = find(source.name)) old->leaving = true;
  Entry& entry = entries_.emplace_back();
  entry.source = std::move(source);
  entry.waiting.push_back(std::move(done));
  queue(entry);
}

void AdapterTable::unload(const std::string& name, const AdapterDone& done) {
  Entry* entry = find(name);
  if (entry == nullptr) return done(failure(ErrorCode::not_found, "no adapter has this name"));
  entry->leaving = true;
  done({});
}

Result<std::optional<AdapterTable::Use>> AdapterTable::use(const std::string& name) {
  Entry* entry = find(name);
  if (entry == nullptr) {
    const auto failed = std::ranges::find_if(entries_, [&](const Entry& other) {
      return other.state == State::failed && other.source.name == name;
    });
    if (failed != entries_.end()) return std::unexpected(failed->error);
    return field_failure("model", ErrorCode::not_found, "the adapter of this request was unloaded");
  }
  if (entry->state == State::failed) return std::unexpected(entry->error);
  entry->last_used = ++uses_;
  if (entry->state == State::ready) return Use{entry->slot, entry->file.digest};
  if (entry->state == State::known) queue(*entry);
  return std::nullopt;
}

AdapterTable::Entry* AdapterTable::find(const std::string& name) {
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return !entry.leaving && entry.source.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

void AdapterTable::queue(Entry& entry) {
  entry.state = State::queued;
  entry.last_used = ++uses_;
  read_next();
}

void AdapterTable::complete(Entry& entry, const Result<>& result) {
  for (const AdapterDone& done : std::exchange(entry.waiting, {})) done(result);
}

void AdapterTable::fail(Entry& entry, Error error) {
  leave_slot(entry);
  entry.file = {};
  entry.state = State::failed;
  const bool was_idle = entry.waiting.empty();
  complete(entry, std::unexpected(error));
  if (!was_idle) {
    entry.leaving = true;
    error = {ErrorCode::invalid_argument, "cannot load the adapter: " + error.message, "model"};
  }
  entry.error = std::move(error);
}

// Adapters are read one at a time, in the order of the requests.
void AdapterTable::read_next() {
  const auto busy = [](const Entry& entry) {
    return entry.state == State::reading || entry.state == State::read;
  };
  if (std::ranges::any_of(entries_, busy)) return;
  Entry* next = nullptr;
  for (Entry& entry : entries_)
    if (entry.state == State::queued && (next == nullptr || entry.last_used < next->last_used)) next = &entry;
  if (next == nullptr) return;
  next->state = State::reading;
  {
    const std::lock_guard lock(mutex_);
    to_read_ = next->source.path;
  }
  arrived_.notify_one();
}

void AdapterTable::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return stopping_ || to_read_; });
    if (stopping_) return;
    const std::string path = *std::exchange(to_read_, {});
    lock.unlock();
    auto file = slots_->read_adapter(path);
    lock.lock();
    read_ = std::move(file);
    wake_();
  }
}

bool AdapterTable::take_read() {
  std::optional<Result<AdapterFile>> file;
  {
    const std::lock_guard lock(mutex_);
    file = std::exchange(read_, {});
  }
  if (!file) return false;
  Entry& entry = *std::ranges::find(entries_, State::reading, &Entry::state);
  if (*file) {
    entry.file = **std::move(file);
    entry.state = State::read;
    return false;
  }
  fail(entry, file->error());
  read_next();
  return true;
}

void AdapterTable::find_slot(Entry& entry, const std::function<bool(int)>& is_used) {
  Entry* oldest = nullptr;
  for (std::size_t p = 0; p < loaded_.size(); ++p) {
    if (loaded_[p] == nullptr) {
      loaded_[p] = &entry;
      entry.slot = static_cast<int>(p);
      return;
    }
    if (loaded_[p]->state == State::ready && !is_used(static_cast<int>(p)) &&
        (oldest == nullptr || loaded_[p]->last_used < oldest->last_used))
      oldest = loaded_[p];
  }
  if (oldest == nullptr) return;
  oldest->state = State::known;
  leave_slot(*oldest);
  find_slot(entry, is_used);
}

void AdapterTable::leave_slot(Entry& entry) {
  if (entry.slot < 0) return;
  slots_->drop_adapter(entry.slot);
  loaded_[static_cast<std::size_t>(std::exchange(entry.slot, -1))] = nullptr;
}

// Copies the next matrices to the device. Returns true if the adapter is ready or has failed.
bool AdapterTable::prepare(Entry& entry) {
  const std::span changes(entry.file.changes);
  const std::span next =
      changes.subspan(entry.prepared, std::min(kChangesAtOnce, changes.size() - entry.prepared));
  if (const auto put = slots_->put_adapter(entry.slot, next); !put) {
    fail(entry, put.error());
    return true;
  }
  entry.prepared += next.size();
  if (entry.prepared < changes.size()) return false;
  entry.prepared = 0;
  entry.file.changes = {};
  entry.state = State::ready;
  complete(entry, {});
  return true;
}

bool AdapterTable::advance(const std::function<bool(int slot)>& is_used) {
  if (entries_.empty()) return false;
  bool news = take_read();
  const bool failed = news;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    const bool in_memory = entry->state == State::ready;
    // a waiting request still needs the error
    const bool is_requested = failed && entry->state == State::failed;
    if (entry->leaving && entry->state != State::reading && !is_requested &&
        !(in_memory && is_used(entry->slot))) {
      leave_slot(*entry);
      complete(*entry, failure(ErrorCode::not_found, "the adapter was unloaded while it was loading"));
      entries_.erase(entry);
    }
    entry = next;
  }
  const auto entry = std::ranges::find(entries_, State::read, &Entry::state);
  if (entry != entries_.end()) {
    if (entry->slot < 0) find_slot(*entry, is_used);
    if (entry->slot >= 0) news |= prepare(*entry);
  }
  read_next();
  return news;
}

bool AdapterTable::preparing() const {
  return std::ranges::any_of(
      entries_, [](const Entry& entry) { return entry.state == State::read && entry.slot >= 0; });
}

}  // namespace octavo
