// The page at `/`: a playground and a live view of the engine, built from web/ and embedded in the binary.
#pragma once

#include <string_view>

#include "http/message.h"

namespace octavo {

http::Response start_page();
// The router's page: shows its fleet instead of an engine.
http::Response fleet_page();
// Sent instead to clients without a key (401): asks for one.
http::Response login_page();

// Made from web/dist by cmake/embed.cmake.
namespace page_files {
extern const std::string_view index;
extern const std::string_view login;
}  // namespace page_files

}  // namespace octavo
