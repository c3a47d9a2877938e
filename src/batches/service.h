// Adds the file and batch APIs to a server or a router.
#pragma once

#include <memory>

#include "batches/host.h"
#include "batches/store.h"
#include "serve/batch_api.h"
#include "serve/service.h"

namespace octavo::batches {

// Starts the worker thread, which also continues the store's unfinished batches.
std::unique_ptr<BatchApi> start(std::unique_ptr<Store> store, HostPtr host);

HostPtr serve_host(const std::shared_ptr<Service>& service);

}  // namespace octavo::batches
