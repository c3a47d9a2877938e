#include "remote/adapter_ledger.h"

#include <utility>

namespace octavo::remote {

ChangeAdapter AdapterLedger::add(ChangeAdapter change, AdapterDone done) {
  change.id = commands_.add({change, std::move(done)});
  return change;
}

void AdapterLedger::take(const AdapterChanged& changed, const UnfinishedRequests& requests) {
  const auto command = commands_.take(changed.id);
  if (!command) return;
  if (changed.error) return command->done(std::unexpected(*changed.error));
  const AdapterSource& source = command->change.source;
  if (!command->change.unload) {
    loaded_[source.name] = source.path;
    left_.erase(source.name);
  } else if (auto left = loaded_.extract(source.name)) {
    left_.insert_or_assign(left.key(), left.mapped());
    forget_left(requests);
  }
  command->done({});
}

void AdapterLedger::append_all(std::string& out, const UnfinishedRequests& requests) {
  forget_left(requests);
  for (const auto* adapters : {&loaded_, &left_})
    for (const auto& [name, path] : *adapters) append_frame(out, ChangeAdapter{.source = {name, path}});
  for (const auto& [number, command] : commands_) {
    ChangeAdapter change = command.change;
    change.id = number;
    append_frame(out, change);
  }
}

void AdapterLedger::forget_left(const UnfinishedRequests& requests) {
  std::erase_if(left_, [&](const auto& left) { return !requests.use_adapter(left.first); });
}

}  // namespace octavo::remote
