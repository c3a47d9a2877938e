// Reports of the server about its models: /v1/models, Ollama's lists, and metrics.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <span>
#include <string>

#include "many/model_table.h"

namespace octavo::many {

// The body of GET /v1/models: OpenAI's fields, and the state of each model. started_at: start of the server,
// in seconds since 1970.
boost::json::object models_json(const ModelTable& table, std::int64_t started_at);
// One entry of that list. `name`: one of the names of the model.
boost::json::object model_json(const ModelTable& table, std::size_t model, const std::string& name,
                               std::int64_t started_at);
// The body of Ollama's GET /api/tags, or of GET /api/ps: only models that are loaded.
boost::json::object ollama_models_json(const ModelTable& table, std::int64_t started_at, bool only_loaded);
// The metrics of the models in Prometheus' text format. names[i]: first name of the model status[i].
std::string table_metrics(std::span<const std::string> names, std::span<const ModelStatus> status,
                          std::int64_t memory_bytes, std::int64_t used_bytes);

}  // namespace octavo::many
