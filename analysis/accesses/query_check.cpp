#include "analysis/accesses/query_check.h"

#include <format>
#include <set>
#include <utility>

#include "analysis/common/no_such_part.h"
#include "analysis/common/op_info.h"
#include "analysis/common/session_layers.h"
#include "analysis/common/tensor_filter.h"
#include "tracer/text/nearest.h"

namespace tt {

namespace {

using Checked = std::expected<void, TraceError>;

Checked not_found(std::string message) {
  return std::unexpected(TraceError{TraceError::Kind::NotFound, std::move(message)});
}

// What the graphs of a session contain.
struct GraphNames {
  std::set<std::string> tensors, ops;  // ops: kinds, and the names of outputs
  bool experts = false;
};

std::expected<GraphNames, TraceError> names_of_graphs(const SessionReader& reader) {
  const auto ids = reader.template_ids();
  if (!ids) return std::unexpected(ids.error());
  GraphNames names;
  for (const TemplateId id : *ids) {
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    for (const Tensor& tensor : (*graph)->tensors) names.tensors.insert(tensor.name);
    for (const Op& op : (*graph)->ops) {
      names.ops.insert(op_name(**graph, op));
      names.ops.insert((*graph)->tensor((*graph)->node(op.last()).output).name);
    }
    for (const Node& node : (*graph)->nodes) names.experts |= node.op == "MUL_MAT_ID";
  }
  return names;
}

Checked check_pattern(const char* what, const std::string& pattern,
                      const std::set<std::string>& names) {
  for (const std::string& name : names)
    if (matches_pattern(name, pattern)) return {};
  std::string plain = pattern;
  std::erase_if(plain, [](char c) { return c == '*' || c == '?'; });
  return not_found(
      std::format("The session has no {} \"{}\"{}", what, pattern, did_you_mean(plain, names)));
}

}  // namespace

Checked check_access_query(const SessionReader& reader, const AccessQuery& query) {
  const AccessFilter& filter = query.filter;
  if (auto layers = validate_layers(reader, filter.tensor.layers); !layers) return layers;
  const auto steps = reader.step_count();
  if (!steps) return std::unexpected(steps.error());
  if (query.first_step.v > 0 && query.first_step.v >= *steps)
    return std::unexpected(no_such_part("session", "step", query.first_step.v, *steps));
  const auto names = names_of_graphs(reader);
  if (!names) return std::unexpected(names.error());
  if (names->tensors.empty()) return {};
  if (auto tensor = check_pattern("tensor", filter.tensor.name, names->tensors); !tensor)
    return tensor;
  if (auto op = check_pattern("op", filter.op_name, names->ops); !op) return op;
  if (!filter.expert) return {};
  if (!names->experts) return not_found("The model has no experts.");
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const std::uint64_t experts = info->n_experts;  // 0: not known, an imported session
  const auto expert = static_cast<std::uint64_t>(*filter.expert);
  if (experts > 0 && expert >= experts)
    return std::unexpected(no_such_part("model", "expert", expert, experts));
  return {};
}

std::vector<std::string> filter_texts(const AccessQuery& query) {
  const AccessFilter& filter = query.filter;
  std::vector<std::string> texts;
  const auto add = [&](const char* name, const auto& value) {
    texts.push_back(std::format("{} {}", name, value));
  };
  if (!filter.tensor.name.empty()) add("tensor", filter.tensor.name);
  if (!filter.op_name.empty()) add("op", filter.op_name);
  if (filter.tensor.layers != LayerSet::all()) texts.emplace_back("the layers");
  if (query.phase) add("phase", to_text(*query.phase));
  if (filter.tensor.component) add("component", to_text(*filter.tensor.component));
  if (filter.tensor.kind) add("kind", to_text(*filter.tensor.kind));
  if (filter.tensor.source) add("source", to_text(*filter.tensor.source));
  if (filter.expert) add("expert", *filter.expert);
  if (filter.write) add("access", *filter.write ? "write" : "read");
  if (query.first_step.v > 0 || query.last_step) texts.emplace_back("the steps");
  return texts;
}

}  // namespace tt
