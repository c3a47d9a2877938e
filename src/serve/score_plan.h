// Plans for /score and /rerank: scores of pairs of a query and a document.
#pragma once

#include <string_view>

#include "base/error.h"
#include "serve/openai/pooling_request.h"
#include "serve/pooling_plan.h"

namespace octavo {

Result<PoolingPlan> plan_scores(const Service& service, openai::ScoreRequest request, std::string_view id);
Result<PoolingPlan> plan_ranks(const Service& service, openai::RerankRequest request, std::string_view id);

}  // namespace octavo
