// A compact form of a template for aggregates over many steps: a few numbers per op and
// access, without names and shapes. The templates of a session share one name table, so
// equal tensors and ops have the same number in all templates. Value types, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/common/kernel.h"
#include "tracer/format/access/access.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/ids.h"

namespace tt {

// A tensor of the session that owns bytes, never a view. Tensors of different templates with
// the same name, kind, source and file offset are the same tensor.
struct SessionTensor {
  std::string name;
  TensorKind kind = TensorKind::Intermediate;
  Source source = Source::Compute;
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  Role role = Role::None;
  std::string type;
  std::uint32_t type_number = 0;  // in SessionNames::types()
  Bytes size{};                   // from the first to the last byte; maximum over the templates
  FileRange file;                 // weights only
};

// A tensor as an op names it, possibly a view. Used by filters on accesses.
struct SessionView {
  std::string name;
  TensorKind kind = TensorKind::Intermediate;
  Source source = Source::Compute;
  LayerId layer = kNoLayer;
  Component component = Component::Other;
};

// An op of the session. Ops with the same kind, layer and output name are the same op.
struct SessionOp {
  std::string output;  // name of its output
  std::uint32_t kind = 0;
  LayerId layer = kNoLayer;
};

// The name tables, in order of first appearance; within a template, in execution order.
class SessionNames {
 public:
  std::uint32_t tensor(const Tensor& root);
  std::uint32_t view(const Tensor& view);
  std::uint32_t kind(const std::string& name);
  std::uint32_t op(SessionOp op);

  const std::vector<SessionTensor>& tensors() const { return tensors_; }
  const std::vector<std::string>& types() const { return types_; }
  const std::vector<SessionView>& views() const { return views_; }
  const std::vector<std::string>& kinds() const { return kinds_; }
  const std::vector<SessionOp>& ops() const { return ops_; }

 private:
  std::vector<SessionTensor> tensors_;
  std::vector<SessionView> views_;
  std::vector<std::string> kinds_, types_;
  std::vector<SessionOp> ops_;
  std::unordered_map<std::string, std::uint32_t> tensor_ids_, view_ids_, kind_ids_, op_ids_,
      type_ids_;
};

struct OutlineOp {
  std::uint32_t kind = 0, op = 0;  // in SessionNames
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  std::optional<Kernel> kernel;                  // kernel_of()
  std::uint32_t first_access = 0, accesses = 0;  // in TemplateOutline::accesses
  // The access that the op's time is attributed to in queries about tensors: the largest
  // weight that it reads, else the largest cache that it reads or writes, else its largest
  // read, else its largest write. kNone: no accesses.
  std::uint32_t main = kNone;
};

// A compact form of Access (tracer/format/access/access.h), a quarter of its size.
struct OutlineAccess {
  std::uint32_t tensor = 0;         // in SessionNames::tensors(): the owner of the bytes
  std::uint32_t name = 0;           // in SessionNames::views()
  TensorId view;                    // in the template: the tensor that the op names
  std::uint32_t rule = kNone;       // in TemplateOutline::rules; kNone: the complete view
  Source source = Source::Compute;  // of the view
  bool write = false;
  std::uint32_t heads = 0;     // see heads_sharing()
  Bytes unit;                  // bytes of the complete view, or per part
  std::uint64_t stride = 0;    // bytes between parts
  std::uint64_t span = 0;      // bytes from the first to the last byte of the view
  FileRange file;              // of the view; part n: offset + n * stride, length `unit`
  std::uint64_t file_end = 0;  // end of the owner's range in the file

  FileRange part_in_file(std::uint64_t number) const;
};

struct OutlineRule {
  PartRule rule;
  Access example;  // an access with this rule
  // If the parts are separate accesses and few, a step's list is stored as a bit set of
  // `words` 64-bit words. words = 0: not stored as a set.
  std::uint32_t first_word = 0, words = 0;
  bool experts() const { return example.extent == Extent::Experts; }
  // Whether rows are counted per batch.
  bool batched() const { return rule.batches != std::array<std::int64_t, 2>{1, 1}; }
  // Whether a step's parts are stored as a list of numbers.
  bool listed() const { return rule.separate && words == 0; }
};

struct TemplateOutline {
  // Of the op's main access; the op has one.
  std::uint32_t main_rule(std::uint32_t op) const { return accesses[ops[op].main].rule; }

  std::uint32_t slots = 0;  // of the template
  std::vector<OutlineOp> ops;
  std::vector<OutlineAccess> accesses;  // in the order of accesses_of()
  std::vector<OutlineRule> rules;
  // Ops whose main access has parts that are separate accesses, which divide the op's time. Those
  // of one rule are adjacent.
  std::vector<std::uint32_t> divided_ops;
  bool batched = false;               // whether any rule is batched()
  std::uint32_t words = 0;            // total words of the sets of all rules
  std::vector<std::uint32_t> limits;  // per slot: limit of its set; 0: not stored as a set
};

// `heads`: of the model's metadata, see head_geometry(). `rules`: kernel_rules_of() the session.
TemplateOutline outline_of(const GraphTemplate& graph, SessionNames& names, HeadCounts heads,
                           const KernelRules& rules);

}  // namespace tt
