// Describes an engine in recordings of requests (--record), so that a replay can check that it runs the
// same engine.
#pragma once

#include <memory>

#include "engine/engine_options.h"
#include "record/recording_engine.h"

namespace octavo {

// Returns a description of the engine. Reads all weights to hash them. options: must contain the path of the
// model. Returns an error if the model or the program cannot be read.
Result<RecordedEngine> recorded_engine(const EngineOptions& options, const EngineInfo& info);

// Wraps the engine so that its requests are recorded. Returns an error of recorded_engine(), or an error if
// the folder cannot be written.
Result<std::unique_ptr<EngineClient>> record_requests(std::unique_ptr<EngineClient> engine,
                                                      const EngineOptions& options,
                                                      const RecordOptions& record);

}  // namespace octavo
