// The columns of tensors: one row per tensor of a graph.
//
// Accessors of a row:
//   template_id(), tensor_id(), tensor(), category()
//   tensor_name(), tensor_type()   std::string_view
//   buffer()                       std::string, or std::string_view
#pragma once

#include "analysis/columns/access_columns.h"

namespace tt::columns {

constexpr auto tensor_columns() {
  using enum Type;
  using enum Pushdown;
  return std::tuple_cat(
      std::tuple{
          Column{{.name = "template",
                  .type = UInt32,
                  .meaning = "number of the template in the session, from 1",
                  .pushdown = Chunks},
                 [](const auto& row) { return row.template_id().v; }},
      },
      pick<access_columns, "tensor", "tensor_name", "tensor_type", "tensor_kind", "layer_id",
           "component", "role", "category">(),
      std::tuple{
          Column{{.name = "input",
                  .type = Text,
                  .meaning = "meaning of an input tensor: token ids, mask, ...",
                  .null = "not an input"},
                 [](const auto& row) -> std::optional<const char*> {
                   if (row.tensor().input == InputLabel::None) return std::nullopt;
                   return to_text(row.tensor().input);
                 }},
      },
      pick<access_columns, "memory_source">(),
      std::tuple{
          Column{
              {.name = "buffer", .type = Text, .meaning = "name of the ggml buffer of the tensor"},
              [](const auto& row) { return row.buffer(); }},
          Column{{.name = "tensor_bytes",
                  .type = UInt64,
                  .unit = "bytes",
                  .meaning = "from the first to the last byte of the tensor"},
                 [](const auto& row) { return size_of(row.tensor()).v; }},
          Column{{.name = "ne0",
                  .type = Int64,
                  .unit = "elements",
                  .meaning = "shape, innermost dimension first"},
                 [](const auto& row) { return row.tensor().ne[0]; }},
          Column{{.name = "ne1", .type = Int64, .unit = "elements"},
                 [](const auto& row) { return row.tensor().ne[1]; }},
          Column{{.name = "ne2", .type = Int64, .unit = "elements"},
                 [](const auto& row) { return row.tensor().ne[2]; }},
          Column{{.name = "ne3", .type = Int64, .unit = "elements"},
                 [](const auto& row) { return row.tensor().ne[3]; }},
          Column{{.name = "nb0",
                  .type = UInt64,
                  .unit = "bytes",
                  .meaning = "strides, innermost dimension first"},
                 [](const auto& row) { return row.tensor().nb[0]; }},
          Column{{.name = "nb1", .type = UInt64, .unit = "bytes"},
                 [](const auto& row) { return row.tensor().nb[1]; }},
          Column{{.name = "nb2", .type = UInt64, .unit = "bytes"},
                 [](const auto& row) { return row.tensor().nb[2]; }},
          Column{{.name = "nb3", .type = UInt64, .unit = "bytes"},
                 [](const auto& row) { return row.tensor().nb[3]; }},
          Column{{.name = "view_of",
                  .type = UInt32,
                  .meaning = "index of the tensor that owns the bytes",
                  .null = "not a view"},
                 [](const auto& row) -> std::optional<std::uint32_t> {
                   if (row.tensor().view_of == kNoTensor) return std::nullopt;
                   return row.tensor().view_of.v;
                 }},
          Column{{.name = "view_offset",
                  .type = UInt64,
                  .unit = "bytes",
                  .meaning = "offset in that tensor",
                  .null = "not a view"},
                 [](const auto& row) -> std::optional<std::uint64_t> {
                   if (row.tensor().view_of == kNoTensor) return std::nullopt;
                   return row.tensor().view_offset;
                 }},
          Column{{.name = "model_file",
                  .type = UInt32,
                  .meaning = "index of the file of a split model that has the weight",
                  .null = "not in a file"},
                 [](const auto& row) { return file_of(row.tensor().file); }},
          Column{{.name = "file_offset",
                  .type = UInt64,
                  .unit = "bytes",
                  .meaning = "start of the weight in the file",
                  .null = "not in a file"},
                 [](const auto& row) { return offset_of(row.tensor().file); }},
          Column{{.name = "file_bytes",
                  .type = UInt64,
                  .unit = "bytes",
                  .meaning = "length of the weight in the file",
                  .null = "not in a file"},
                 [](const auto& row) { return length_of(row.tensor().file); }},
      });
}

// What describes a source of an op.
constexpr auto source_columns() {
  return pick<tensor_columns, "tensor", "tensor_name", "tensor_type", "tensor_kind",
              "memory_source", "ne0", "ne1", "ne2", "ne3">();
}

}  // namespace tt::columns
