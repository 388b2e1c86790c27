// Recorded data of a session as JSON: tokens, templates, nodes, tensors, steps, ops, accesses,
// graphs. Rows of tensors, steps, ops and accesses have the columns of analysis/columns.
#pragma once

#include "analysis/accesses/access_table.h"
#include "analysis/graph/graph_part.h"
#include "analysis/tables/node_table.h"
#include "analysis/tables/op_table.h"
#include "analysis/tables/step_summary.h"
#include "analysis/tables/template_list.h"
#include "analysis/tables/tensor_table.h"
#include "analysis/tables/token_page.h"
#include "api/json/json.h"

namespace tt {

Json to_json(const Token& token);
Json to_json(const TemplateRow& row);
Json to_json(const GraphTemplate& graph, const NodeRow& row);
Json to_json(const TensorTable& table, const TensorRow& row);
Json to_json(const StepSummary& step);  // also "layers": {"ns": [...], "bytes": [...]}
Json to_json(const OpTable& table, const OpRow& row);  // also "sources": [...]
Json to_json(const AccessRow& row);
// The fields output_min to output_inf of an op.
Json output_json(const ValueStats& stats);
Json to_json(const GraphPart& part);
// {"step", "template", "layers", "groups": [...], "edges": [...]}: collapsed().
Json collapsed_json(const GraphPart& part);

// {"total": n, "steps": [...]}
Json to_json(const Page<AnsweredToken>& tokens);
Json to_json(const std::vector<TemplateRow>& templates);  // no total
Json to_json(const NodeTable& nodes);
Json to_json(const TensorTable& tensors);
Json to_json(const Page<StepSummary>& steps);
Json to_json(const OpTable& ops);
Json to_json(const Page<AccessRow>& accesses);

// {"next": cursor or null, "accesses": [...]}
Json accesses_json(const AccessPage& page, const std::string& session, const AccessQuery& query);

}  // namespace tt
