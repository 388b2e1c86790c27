// The columns of accesses: one row per read or write of a tensor by an op of a step.
//
// Accessors of a row:
//   step()            Step, or StepFacts
//   place(), part()   index of the access in its template, and of the row within the access
//   op_id(), tensor_id(), is_write(), rule()   of the template's access
//   access()          StepAccess
//   op(), tensor(), category()
//   operation_type(), device(), tensor_name(), tensor_type()   std::string_view
//   begin(), duration()   of the op; no duration: not recorded
//   self()            part of the duration that counts for the row
//   address()         of the tensor, of the slice of the expert, or of the rows of the head
//   head()            std::optional: one head of a row per head
//   heads()           number of heads that the tensor is divided into; 0: not divided
//   session_id()      std::string_view
// A getter of a PerStep column uses only step() and session_id(), that of a PerAccess column
// only what is the same in all steps.
#pragma once

#include <cmath>
#include <optional>

#include "analysis/columns/enumerations.h"
#include "analysis/columns/values.h"

namespace tt::columns {

constexpr auto access_columns() {
  using enum Type;
  using enum Varies;
  using enum Pushdown;
  return std::tuple{
      Column{{.name = "session",
              .type = Text,
              .meaning = "session id",
              .varies = PerStep,
              .per_session = true,
              .name_in_set = "session_id"},
             [](const auto& row) { return row.session_id(); }},
      Column{{.name = "step",
              .type = UInt32,
              .meaning = "index of the step in the session",
              .varies = PerStep,
              .pushdown = Chunks},
             [](const auto& row) { return row.step().id.v; }},
      Column{{.name = "op",
              .type = UInt32,
              .meaning = "index of the op in the template",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return row.op_id().v; }},
      Column{{.name = "access",
              .type = UInt32,
              .meaning = "index of the access in the template",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return row.place(); }},
      Column{
          {.name = "part",
           .type = UInt32,
           .meaning = "index of the row within the access: an expert, a row of a matrix, a head"},
          [](const auto& row) { return row.part(); }},
      Column{
          {.name = "timestamp_ns",
           .type = Int64,
           .unit = "ns",
           .meaning = "start of the op, since the start of the session; start of the step if the "
                      "time of the op was not recorded",
           .varies = PerTime,
           .pushdown = Chunks},
          [](const auto& row) { return row.begin().v; }},
      Column{
          {.name = "duration_ns",
           .type = Int64,
           .unit = "ns",
           .meaning = "duration of the op, not of one access. Fast times include the wait at the "
                      "barrier of the previous op",
           .null = "not recorded",
           .varies = PerTime,
           .of_op = true},
          [](const auto& row) { return ns_or_null(row.duration()); }},
      Column{
          {.name = "self_ns",
           .type = Int64,
           .unit = "ns",
           .meaning = "part of the op's duration that counts for this row; may be summed. The rows "
                      "of the op's main access (docs/heat.md) have all of it in equal parts, the "
                      "others 0",
           .null = "not recorded",
           .varies = PerTime,
           .for_sums = true},
          [](const auto& row) { return ns_or_null(row.self()); }},
      Column{{.name = "token_id",
              .type = UInt32,
              .meaning = "index in the session of the first token that the step evaluated",
              .varies = PerStep,
              .pushdown = Chunks},
             [](const auto& row) { return row.step().first_token; }},
      Column{{.name = "token_count",
              .type = UInt32,
              .unit = "tokens",
              .meaning = "number of tokens that the step evaluated",
              .varies = PerStep},
             [](const auto& row) { return row.step().n_tokens; }},
      Column{{.name = "phase",
              .type = Text,
              .meaning = "phase of the step",
              .words = &kPhases,
              .varies = PerStep,
              .pushdown = Chunks},
             [](const auto& row) { return to_text(row.step().phase); }},
      Column{{.name = "timing",
              .type = Text,
              .meaning = "how the times of the step were taken",
              .words = &kTimings,
              .varies = PerStep},
             [](const auto& row) { return to_text(row.step().timing); }},
      Column{{.name = "template",
              .type = UInt32,
              .meaning = "number of the template in the session, from 1",
              .varies = PerStep,
              .pushdown = Chunks},
             [](const auto& row) { return row.step().graph.v; }},
      Column{{.name = "operation_type",
              .type = Text,
              .meaning = "name of the op in ggml; for a fused op all names, joined: RMS_NORM+MUL",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return row.operation_type(); }},
      Column{{.name = "op_layer_id",
              .type = Int32,
              .meaning = "layer of the op",
              .null = "no layer",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return layer_or_null(row.op().layer); }},
      Column{{.name = "device",
              .type = Text,
              .meaning = "device that executed the op",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return row.device(); }},
      Column{{.name = "write",
              .type = Flag,
              .meaning = "whether the access writes; otherwise it reads",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return row.is_write(); }},
      Column{{.name = "tensor",
              .type = UInt32,
              .meaning = "index of the tensor in the template; possibly a view",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return row.tensor_id().v; }},
      Column{{.name = "tensor_name",
              .type = Text,
              .meaning = "name of the tensor in ggml; not unique",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return row.tensor_name(); }},
      Column{{.name = "tensor_type",
              .type = Text,
              .meaning = "type of the tensor in ggml: Q4_K, F32, ...",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return row.tensor_type(); }},
      Column{{.name = "tensor_kind",
              .type = Text,
              .words = &kTensorKinds,
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return to_text(row.tensor().kind); }},
      Column{{.name = "tensor_bytes",
              .type = UInt64,
              .unit = "bytes",
              .meaning = "from the first to the last byte of the tensor",
              .varies = PerAccess},
             [](const auto& row) { return size_of(row.tensor()).v; }},
      Column{{.name = "tensor_ptr",
              .type = UInt64,
              .unit = "address",
              .meaning = "address of the data during the recording: of the tensor, of the slice of "
                         "the expert, or of the rows of the head",
              .null = "not recorded"},
             [](const auto& row) { return unless_zero(row.address()); }},
      Column{{.name = "layer_id",
              .type = Int32,
              .meaning = "layer of the tensor",
              .null = "no layer",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return layer_or_null(row.tensor().layer); }},
      Column{{.name = "component",
              .type = Text,
              .meaning = "part of the model that the tensor belongs to",
              .words = &kComponents,
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return to_text(row.tensor().component); }},
      Column{{.name = "role",
              .type = Text,
              .meaning = "purpose of the tensor in the component: Q, up, router, ...; empty: none",
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return to_text(row.tensor().role); }},
      Column{
          {.name = "category",
           .type = Text,
           .meaning = "whether the tensor belongs to a layer, to no layer (embedding, output) or "
                      "to all layers (infrastructure)",
           .words = &kCategories,
           .varies = PerAccess,
           .pushdown = Rows},
          [](const auto& row) { return to_text(row.category()); }},
      Column{{.name = "memory_source",
              .type = Text,
              .meaning = "where the bytes of the tensor are (disk: the mapped model file)",
              .words = &kSources,
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return to_text(row.tensor().source); }},
      Column{{.name = "model_file",
              .type = UInt32,
              .meaning = "index of the file of a split model",
              .null = "not in a file",
              .varies = PerAccess},
             [](const auto& row) { return file_of(row.rule().range); }},
      Column{{.name = "file_offset",
              .type = UInt64,
              .unit = "bytes",
              .meaning = "start of the touched range of the file",
              .null = "not in a file"},
             [](const auto& row) { return offset_of(row.access().range); }},
      Column{{.name = "file_bytes",
              .type = UInt64,
              .unit = "bytes",
              .meaning = "length of the touched range of the file",
              .null = "not in a file"},
             [](const auto& row) { return length_of(row.access().range); }},
      Column{{.name = "tensor_file_offset",
              .type = UInt64,
              .unit = "bytes",
              .meaning =
                  "start in the file of the whole tensor, or of the view that the op uses; rows "
                  "and experts are numbered from there",
              .null = "not in a file",
              .varies = PerAccess},
             [](const auto& row) { return offset_of(row.rule().range); }},
      Column{{.name = "size_bytes",
              .type = UInt64,
              .unit = "bytes",
              .meaning = "bytes touched; each byte counts once per op; may be summed",
              .former_name = "bytes"},
             [](const auto& row) { return row.access().touched.v; }},
      Column{{.name = "extent",
              .type = Text,
              .meaning = "part of the tensor that is touched",
              .words = &kExtents,
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) { return to_text(row.rule().extent); }},
      Column{{.name = "unit_bytes",
              .type = UInt64,
              .unit = "bytes",
              .meaning = "bytes per row, expert or cell; for the extent all, the touched bytes",
              .varies = PerAccess},
             [](const auto& row) { return row.rule().unit.v; }},
      Column{{.name = "qkv_type",
              .type = Text,
              .meaning = "role of the tensor in attention",
              .null = "none",
              .words = &kQkvTypes,
              .varies = PerAccess,
              .pushdown = Rows},
             [](const auto& row) -> std::optional<const char*> {
               const Role role = row.tensor().role;
               if (role < Role::Q || role > Role::O) return std::nullopt;
               return to_text(role);
             }},
      Column{{.name = "attention_head",
              .type = Int32,
              .meaning = "head of the row; only in exports with one row per head",
              .null = "all heads"},
             [](const auto& row) { return row.head(); }},
      Column{{.name = "attention_heads",
              .type = UInt32,
              .unit = "heads",
              .meaning = "number of heads that the tensor is divided into",
              .null = "not divided",
              .varies = PerAccess},
             [](const auto& row) -> std::optional<std::uint32_t> {
               const std::uint32_t heads = row.heads();
               if (heads == 0) return std::nullopt;
               return heads;
             }},
      Column{{.name = "expert_id",
              .type = Int32,
              .meaning = "routed expert",
              .null = "not an access of an expert",
              .pushdown = Rows},
             [](const auto& row) { return unless_negative(row.access().expert); }},
      Column{{.name = "expert_rank",
              .type = Int32,
              .meaning = "best rank of the expert among the tokens of the step; 0: first choice",
              .null = "unknown, or not an access of an expert"},
             [](const auto& row) {
               return row.access().expert < 0 ? std::nullopt : unless_negative(row.access().rank);
             }},
      Column{{.name = "routing_score",
              .type = Float,
              .meaning = "weight from the router at that rank",
              .null = "unknown, or not an access of an expert"},
             [](const auto& row) -> std::optional<float> {
               if (row.access().expert < 0 || std::isnan(row.access().score)) return std::nullopt;
               return row.access().score;
             }},
      Column{{.name = "expert_name",
              .type = Text,
              .meaning = "name of the expert's part of the tensor: blk.5.expert_3.ffn_up.weight",
              .null = "not an access of an expert"},
             [](const auto& row) -> std::optional<std::string> {
               if (row.access().expert < 0) return std::nullopt;
               return expert_name(row.tensor_name(), row.access().expert);
             }},
  };
}

}  // namespace tt::columns
