// An error in the form of the protocol that the client speaks.
#pragma once

#include "base/error.h"
#include "http/message.h"
#include "openai/routes.h"

namespace octavo::openai {

http::Response error_response_in(Protocol protocol, const Error& error);

}  // namespace octavo::openai
