// Adds files and batches to a server.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "batches/store.h"
#include "serve/service.h"

namespace octavo::batches {

// Sets service->batches, and continues the unfinished batches of the store.
void start(std::unique_ptr<Store> store, const std::shared_ptr<Service>& service);

}  // namespace octavo::batches
