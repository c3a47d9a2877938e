// Interface of the two fetchers: of Octavo's protocol (block_fetcher.h), and of vLLM's (nixl/vllm_fetcher.h).
#pragma once

#include <functional>
#include <span>

#include "transfer/kv_connector.h"

namespace octavo {

class Fetcher {
 public:
  // Writes the contents of a piece into the cache. Any thread calls it.
  using WriteBlock = std::function<void(KvLocation, std::span<const std::byte>)>;
  using OnResult = std::function<void(LoadResult)>;

  // Stops running fetches and drops waiting tasks, without calling OnResult.
  virtual ~Fetcher() = default;

  // Queues the task and returns at once. A task without blocks only ends its lease.
  virtual void post(LoadTask task) = 0;
  // Renews leases of the producer at this address. It may wait for the producer.
  virtual Result<> renew(const std::string& host, int port, const std::vector<std::string>& leases) = 0;
};

}  // namespace octavo
