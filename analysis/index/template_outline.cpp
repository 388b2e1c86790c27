#include "analysis/index/template_outline.h"

#include <algorithm>
#include <format>
#include <utility>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/op_info.h"
#include "analysis/tables/tensor_table.h"

namespace tt {

namespace {

std::uint32_t number_of(std::unordered_map<std::string, std::uint32_t>& ids, std::string key,
                        std::size_t next) {
  return ids.try_emplace(std::move(key), static_cast<std::uint32_t>(next)).first->second;
}

std::uint32_t rule_of(const GraphTemplate& graph, const Access& access,
                      std::vector<OutlineRule>& rules) {
  if (access.slot == kNoSlot) return kNone;
  const PartRule rule = part_rule(graph, access);
  const bool experts = access.extent == Extent::Experts;
  const auto known = std::ranges::find_if(
      rules, [&](const OutlineRule& r) { return r.rule == rule && r.experts() == experts; });
  const auto at = static_cast<std::uint32_t>(known - rules.begin());
  if (known == rules.end()) rules.push_back({rule, access});
  return at;
}

// Maximum number of parts stored as a bit set; up to here a set is not larger than a list.
constexpr std::int64_t kMaxSetParts = 512;

// The limit of a slot's list if all rules that use it have the same limit and at least one of
// them stores its parts; else 0.
std::uint32_t set_limit(const std::vector<OutlineRule>& rules, SlotId slot) {
  std::int64_t limit = 0;
  bool separate = false;
  for (const OutlineRule& of : rules) {
    if (of.rule.slot != slot) continue;
    if (of.batched() || of.rule.limit <= 0 || of.rule.limit > kMaxSetParts ||
        (limit != 0 && of.rule.limit != limit))
      return 0;
    limit = of.rule.limit;
    separate |= of.rule.separate;
  }
  return separate ? static_cast<std::uint32_t>(limit) : 0;
}

void choose_sets(TemplateOutline& outline) {
  for (std::uint32_t i = 0; i < outline.slots; ++i)
    outline.limits.push_back(set_limit(outline.rules, SlotId{i}));
  for (OutlineRule& of : outline.rules) {
    outline.batched |= of.batched();
    if (!of.rule.separate || of.rule.slot.v >= outline.slots) continue;
    of.first_word = outline.words;
    of.words = (outline.limits[of.rule.slot.v] + 63) / 64;
    outline.words += of.words;
  }
}

void list_divided_ops(TemplateOutline& outline) {
  for (std::uint32_t i = 0; i < outline.ops.size(); ++i) {
    if (outline.ops[i].main == kNone) continue;
    const std::uint32_t rule = outline.main_rule(i);
    if (rule != kNone && outline.rules[rule].rule.separate) outline.divided_ops.push_back(i);
  }
  std::ranges::stable_sort(outline.divided_ops, {},
                           [&](std::uint32_t op) { return outline.main_rule(op); });
}

}  // namespace

std::uint32_t SessionNames::tensor(const Tensor& root) {
  const std::uint32_t id = number_of(
      tensor_ids_,
      std::format("{}/{}/{}/{}/{}", static_cast<int>(root.kind), static_cast<int>(root.source),
                  root.file.file, root.file.offset, root.name),
      tensors_.size());
  if (id == tensors_.size()) {
    const std::uint32_t type = number_of(type_ids_, root.type, types_.size());
    if (type == types_.size()) types_.push_back(root.type);
    tensors_.push_back({.name = root.name,
                        .kind = root.kind,
                        .source = root.source,
                        .layer = root.layer,
                        .component = root.component,
                        .role = root.role,
                        .type = root.type,
                        .type_number = type,
                        .size = size_of(root),
                        .file = root.file});
  } else {
    tensors_[id].size = std::max(tensors_[id].size, size_of(root));
  }
  return id;
}

std::uint32_t SessionNames::view(const Tensor& view) {
  const std::uint32_t id = number_of(
      view_ids_,
      std::format("{}/{}/{}/{}/{}", static_cast<int>(view.kind), static_cast<int>(view.source),
                  view.layer.v, static_cast<int>(view.component), view.name),
      views_.size());
  if (id == views_.size())
    views_.push_back({.name = view.name,
                      .kind = view.kind,
                      .source = view.source,
                      .layer = view.layer,
                      .component = view.component});
  return id;
}

std::uint32_t SessionNames::kind(const std::string& name) {
  const std::uint32_t id = number_of(kind_ids_, name, kinds_.size());
  if (id == kinds_.size()) kinds_.push_back(name);
  return id;
}

std::uint32_t SessionNames::op(SessionOp op) {
  const std::uint32_t id =
      number_of(op_ids_, std::format("{}/{}/{}", op.kind, op.layer.v, op.output), ops_.size());
  if (id == ops_.size()) ops_.push_back(std::move(op));
  return id;
}

FileRange OutlineAccess::part_in_file(std::uint64_t number) const {
  const std::uint64_t from = file.offset + number * stride;
  if (file.empty() || from < file.offset || from >= file_end) return {};
  return {file.file, from, std::min(unit.v, file_end - from)};
}

TemplateOutline outline_of(const GraphTemplate& graph, SessionNames& names, HeadCounts heads,
                           const KernelRules& rules) {
  TemplateOutline outline;
  outline.slots = static_cast<std::uint32_t>(graph.slots.size());
  const std::vector<Access> accesses = accesses_of(graph);
  const std::vector<std::uint32_t> main = main_accesses_of(graph, accesses);
  const LayerHeads layers = heads_of_layers(graph);
  std::vector<std::uint32_t> numbers(graph.tensors.size(), kNone);  // per root tensor
  std::vector<std::uint32_t> views(graph.tensors.size(), kNone);
  for (std::uint32_t i = 0, next = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    const std::uint32_t kind = names.kind(op_name(graph, op));
    OutlineOp out{.kind = kind,
                  .op = names.op({graph.tensor(graph.node(op.last()).output).name, kind, op.layer}),
                  .layer = op.layer,
                  .component = op_role_of(graph, op).component,
                  .kernel = kernel_of(graph, op, rules),
                  .first_access = next,
                  .accesses = 0,
                  .main = main[i]};
    for (; next < accesses.size() && accesses[next].op.v == i; ++next, ++out.accesses) {
      const Access& access = accesses[next];
      const TensorId root = graph.root(access.tensor);
      const Tensor& view = graph.tensor(access.tensor);
      if (numbers[root.v] == kNone) numbers[root.v] = names.tensor(graph.tensor(root));
      if (views[access.tensor.v] == kNone) views[access.tensor.v] = names.view(view);
      const FileRange& whole = graph.tensor(root).file;
      outline.accesses.push_back({.tensor = numbers[root.v],
                                  .name = views[access.tensor.v],
                                  .view = access.tensor,
                                  .rule = rule_of(graph, access, outline.rules),
                                  .source = view.source,
                                  .write = access.write,
                                  .heads = heads_sharing(graph, access, layers, heads),
                                  .unit = access.unit,
                                  .stride = access.stride,
                                  .span = size_of(view).v,
                                  .file = access.range,
                                  .file_end = whole.offset + whole.length});
    }
    outline.ops.push_back(out);
  }
  choose_sets(outline);
  list_divided_ops(outline);
  return outline;
}

}  // namespace tt
