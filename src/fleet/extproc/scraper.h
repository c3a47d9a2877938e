// Reads what every endpoint says of itself: its metrics, and the LoRA adapters that it serves.
#pragma once

#include <optional>
#include <vector>

#include "fleet/extproc/endpoint_picker.h"
#include "fleet/extproc/page_poller.h"

namespace octavo::fleet {

// Must outlive the client whose loop it runs on.
class Scraper {
 public:
  // `models`: where the list of models is; nothing: nobody asks for it.
  Scraper(EndpointPicker& picker, http::ClientLoop& loop, PollOptions metrics,
          std::optional<PollOptions> models);
  void start();

 private:
  void metrics_read(const Member& asked, const Result<http::Response>& page);
  std::optional<EndpointState> state_in(EndpointId id, const Result<http::Response>& page) const;
  void models_read(const Member& asked, const Result<http::Response>& page);

  EndpointPicker& picker_;
  http::ClientLoop& loop_;
  PagePoller metrics_;
  std::optional<PagePoller> models_;
  std::vector<EndpointPicker::Scrape> scrapes_;  // handed to the picker together
};

}  // namespace octavo::fleet
