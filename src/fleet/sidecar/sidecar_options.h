// Options of `octavo sidecar`. Names and defaults follow llm-d's routing sidecar.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/server.h"
#include "trace/tracer.h"

namespace octavo::fleet {

struct SidecarOptions {
  std::string decoder_url = "http://127.0.0.1:8200";  // the local engine
  std::string connector = "nixlv2";
  int prefill_retries_max = 0;
  int prefill_retry_backoff_ms = 200;
  bool sample_prefillers = false;                    // choose a random prefiller instead of the first
  bool only_allowed = false;                         // allow only the prefillers in allowed_prefillers
  std::vector<std::string> allowed_prefillers = {};  // host:port
  int bootstrap_port = 8998;           // port of prefillers with SGLang's or Mooncake's transfer
  int p2p_port = 7777;                 // port of prefillers whose OffloadingConnector serves blocks
  int request_timeout_ms = 1'800'000;  // limit for one prefill or decode request
  int prefill_timeout_ms = 60'000;     // limit for a prefill request that the answer waits for
  int blind_wait_ms = 10'000;          // limit for engines that report no load; longer for long prompts
  http::ServerOptions http = {};
  std::shared_ptr<Tracer> tracer = {};  // null: no spans
};

}  // namespace octavo::fleet
