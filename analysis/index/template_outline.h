// What a template says to questions that sum over many steps: per op and access a
// few numbers, without names and shapes. A session's templates share the names of
// their tensors and ops, so that what is the same in two of them has one number.
// Pure values, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tracer/format/access/access.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/ids.h"

namespace tt {

// A tensor of the session: one that owns bytes, never a view. What has the same
// name, kind and place in the file is the same one, in whatever template.
struct SessionTensor {
  std::string name;
  TensorKind kind = TensorKind::Intermediate;
  Source source = Source::Compute;
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  Role role = Role::None;
  std::string type;
  Bytes size{};    // of its bytes, from the first to the last
  FileRange file;  // of a weight
};

// A tensor as ops name it, perhaps a view of another: what filters on accesses ask.
struct SessionView {
  std::string name;
  TensorKind kind = TensorKind::Intermediate;
  Source source = Source::Compute;
  LayerId layer = kNoLayer;
  Component component = Component::Other;
};

// An op of the session. What has the same kind and output's name is the same one.
struct SessionOp {
  std::string output;  // name of its output
  std::uint32_t kind = 0;
  LayerId layer = kNoLayer;
};

// In order of first appearance, which within a template is that of execution.
class SessionNames {
 public:
  std::uint32_t tensor(const Tensor& root);
  std::uint32_t view(const Tensor& view);
  std::uint32_t kind(const std::string& name);
  std::uint32_t op(SessionOp op);

  const std::vector<SessionTensor>& tensors() const { return tensors_; }
  const std::vector<SessionView>& views() const { return views_; }
  const std::vector<std::string>& kinds() const { return kinds_; }
  const std::vector<SessionOp>& ops() const { return ops_; }

 private:
  std::vector<SessionTensor> tensors_;
  std::vector<SessionView> views_;
  std::vector<std::string> kinds_;
  std::vector<SessionOp> ops_;
  std::unordered_map<std::string, std::uint32_t> tensor_ids_, view_ids_, kind_ids_, op_ids_;
};

struct OutlineOp {
  std::uint32_t kind = 0, op = 0;  // in SessionNames
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  std::uint32_t first_access = 0, accesses = 0;  // in TemplateOutline::accesses
  // The access that the op's time counts for where a question is about tensors: the
  // largest weight that it reads, else the largest cache that it reads or writes,
  // else what it reads most of, else what it writes. kNone: it has no access.
  std::uint32_t main = kNone;
};

// As tracer/format/access/access.h has it, in a quarter of the room.
struct OutlineAccess {
  std::uint32_t tensor = 0;    // in SessionNames, the owner of the bytes
  std::uint32_t name = 0;      // in SessionNames, of the view
  TensorId view;               // as the op names it, in the template
  std::uint32_t rule = kNone;  // in TemplateOutline::rules; kNone: the whole view, `unit` bytes
  Source source = Source::Compute;  // of the view
  bool write = false;
  Bytes unit;                  // bytes of the whole, or per part
  std::uint64_t stride = 0;    // bytes between parts
  std::uint64_t span = 0;      // of the view, from its first byte to its last
  FileRange file;              // of the view; of part n: n * stride further on, `unit` long
  std::uint64_t file_end = 0;  // of the owner of the bytes

  FileRange part_in_file(std::uint64_t number) const;
};

struct OutlineRule {
  PartRule rule;
  Access example;  // one that has it
  // Of few parts that are accesses of their own, a step's list is kept as a set: a bit for
  // each, in so many words of 64. 0: it is not.
  std::uint32_t first_word = 0, words = 0;
  bool experts() const { return example.extent == Extent::Experts; }
  // Rows are counted batch by batch.
  bool batched() const { return rule.batches != std::array<std::int64_t, 2>{1, 1}; }
  // A step's parts are kept as a list of their numbers.
  bool listed() const { return rule.apart && words == 0; }
};

struct TemplateOutline {
  std::uint32_t slots = 0;  // of the template
  std::vector<OutlineOp> ops;
  std::vector<OutlineAccess> accesses;  // as accesses_of() orders them
  std::vector<OutlineRule> rules;
  bool batched = false;               // one of them is
  std::uint32_t words = 0;            // of the sets of all rules
  std::vector<std::uint32_t> limits;  // per slot: of those that are wanted as sets; else 0
};

TemplateOutline outline_of(const GraphTemplate& graph, SessionNames& names);

}  // namespace tt
