// The identity of an engine, for records and their replay.
#pragma once

#include <memory>

#include "engine/engine_options.h"
#include "record/recording_engine.h"

namespace octavo {

// Returns the engine's identity; reads all weights. options: of the engine, with the path of the model.
// Errors: the model or the program's file cannot be read.
Result<RecordedEngine> recorded_engine(const EngineOptions& options, const EngineInfo& info);

// Wraps the engine, so that its requests are recorded. Errors: as above, or the folder cannot be written.
Result<std::unique_ptr<EngineClient>> record_requests(std::unique_ptr<EngineClient> engine,
                                                      const EngineOptions& options,
                                                      const RecordOptions& record);

}  // namespace octavo
