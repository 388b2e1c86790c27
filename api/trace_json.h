// What was recorded in a session, as JSON: tokens, steps, ops, accesses.
#pragma once

#include "analysis/access_table.h"
#include "analysis/op_table.h"
#include "analysis/step_summary.h"
#include "api/json.h"

namespace tt {

Json to_json(const Token& token);
Json to_json(const StepSummary& step);
Json to_json(const GraphTemplate& graph, const OpRow& op);
Json to_json(const GraphTemplate& graph, const AccessRow& access);

// {"total": n, "steps": [...]}
Json to_json(const Page<Token>& tokens);
Json to_json(const Page<StepSummary>& steps);
Json to_json(const OpTable& ops);
Json to_json(const AccessTable& accesses);

}  // namespace tt
