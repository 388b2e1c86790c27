#include "tracer/debug/change.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <array>
#include <format>
#include <string_view>
#include <vector>

#include "tracer/debug/breakpoint.h"
#include "tracer/debug/tensor_values.h"
#include "tracer/debug/words.h"
#include "tracer/format/names/names.h"
#include "tracer/request/request_bounds.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

// In which dimension the outputs around the attention have its heads. `joined`: each head has an
// equal part of the dimension.
struct HeadDimension {
  std::string_view name;
  std::size_t dimension;
  bool joined = false;
};
constexpr std::array kHeadDimensions = {
    HeadDimension{"Qcur", 1},        HeadDimension{"kq", 2},
    HeadDimension{"kq_soft_max", 2}, HeadDimension{"kq_soft_max_ext", 2},
    HeadDimension{"kqv", 2},         HeadDimension{"kqv_out", 0, true}};

std::expected<std::array<IndexRange, 4>, std::string> head_indices(const ggml_tensor& output,
                                                                   std::uint64_t head,
                                                                   std::uint32_t n_heads) {
  if (head >= n_heads)
    return std::unexpected(
        std::format("Head {} does not exist: there are {}, from 0.", head, n_heads));
  auto indices = *Selection{}.in(shape_of(output));
  const auto found =
      std::ranges::find(kHeadDimensions, name_without_layer(output.name), &HeadDimension::name);
  const bool is_flash = output.op == GGML_OP_FLASH_ATTN_EXT;
  const HeadDimension of = is_flash                         ? HeadDimension{"", 1}
                           : found == kHeadDimensions.end() ? HeadDimension{"", 0}
                                                            : *found;
  const std::uint64_t n = indices[of.dimension].last + 1;
  const std::uint64_t each = of.joined ? n / n_heads : 1;
  if ((!is_flash && found == kHeadDimensions.end()) || n != each * n_heads) {
    return std::unexpected(
        std::format("{} has no dimension of heads. Those of Qcur, kq_soft_max, kqv_out and "
                    "FLASH_ATTN_EXT have; "
                    "in others, choose the elements: [indices].",
                    output.name));
  }
  indices[of.dimension] = {.first = head * each, .last = head * each + each - 1};
  return indices;
}

}  // namespace

std::expected<Change, std::string> Change::parse(const std::string& text) {
  const auto wrong = [&] {
    return std::unexpected(
        std::format("\"{}\" is not a change. Use zero, scale NUMBER or set NUMBER, with [indices], "
                    "head N or expert N after the verb for a part of the output.",
                    text.substr(0, 100)));
  };
  std::string_view line = text;
  Change change;
  change.text_ = text;
  const std::size_t open = line.find('['), close = line.find(']');
  std::vector<std::string_view> words = words_of(line.substr(0, open));
  if (text.size() > kMaxPatternBytes || words.empty()) return wrong();
  if (open != line.npos) {
    if (close == line.npos || close < open || words.size() != 1) return wrong();
    auto selection = Selection::parse(line.substr(open + 1, close - open - 1));
    if (!selection) return std::unexpected(selection.error());
    change.which_ = *std::move(selection);
    for (const std::string_view word : words_of(line.substr(close + 1))) words.push_back(word);
  } else if (words.size() > 2 && (words[1] == "head" || words[1] == "expert")) {
    const auto index = parse_number<std::uint16_t>(words[2]);
    if (!index) return wrong();
    if (words[1] == "head")
      change.which_ = Head{*index};
    else
      change.which_ = Expert{*index};
    words.erase(words.begin() + 1, words.begin() + 3);
  }
  change.scales_ = words[0] == "scale";
  if (words[0] == "zero")
    return words.size() == 1 ? std::expected<Change, std::string>(change) : wrong();
  if (words.size() != 2 || (words[0] != "scale" && words[0] != "set")) return wrong();
  const auto number = parse_number<float>(words[1]);
  if (!number) return wrong();
  change.number_ = *number;
  return change;
}

template <class Visit>
std::expected<std::uint64_t, std::string> Change::for_each_row(const ggml_tensor& output,
                                                               std::uint32_t n_heads,
                                                               Visit visit) const {
  if (const std::string reason = unreadable_reason(output); !reason.empty())
    return std::unexpected(std::format("{} cannot be changed: {}.", output.name, reason));
  if (output.type != GGML_TYPE_F32) {
    return std::unexpected(
        std::format("{} has the type {}; only outputs of type f32 can be changed.", output.name,
                    ggml_type_name(output.type)));
  }
  auto indices = Selection{}.in(shape_of(output));
  std::vector<std::int32_t> experts;  // of each row in the two dimensions of rows; empty: all rows
  if (const auto* selection = std::get_if<Selection>(&which_)) {
    indices = selection->in(shape_of(output));
  } else if (const auto* head = std::get_if<Head>(&which_)) {
    indices = head_indices(output, head->index, n_heads);
  } else {
    if (output.op != GGML_OP_MUL_MAT_ID) {
      return std::unexpected(
          std::format("{} has no rows of experts; the outputs of MUL_MAT_ID have.", output.name));
    }
    experts = routed_experts(output);
  }
  if (!indices) return std::unexpected(indices.error());
  const auto& [i0, i1, i2, i3] = *indices;
  std::uint64_t chosen = 0;
  const std::uint64_t elements = i0.last - i0.first + 1;
  for (std::uint64_t c = i3.first; c <= i3.last; ++c) {
    for (std::uint64_t b = i2.first; b <= i2.last; ++b) {
      for (std::uint64_t a = i1.first; a <= i1.last; ++a) {
        if (const auto* expert = std::get_if<Expert>(&which_);
            expert != nullptr &&
            experts[b * static_cast<std::uint64_t>(output.ne[1]) + a] != expert->index)
          continue;
        const std::size_t at =
            c * output.nb[3] + b * output.nb[2] + a * output.nb[1] + i0.first * output.nb[0];
        visit(at, static_cast<std::size_t>(elements));
        chosen += elements;
      }
    }
  }
  if (chosen == 0) return std::unexpected("This step routes no token to that expert.");
  return chosen;
}

std::expected<std::uint64_t, std::string> Change::apply(ggml_tensor& output,
                                                        std::uint32_t n_heads) const {
  std::vector<float> row;
  return for_each_row(output, n_heads, [&](std::size_t at, std::size_t elements) {
    row.resize(elements);
    const std::size_t bytes = elements * sizeof(float);
    ggml_backend_tensor_get(&output, row.data(), at, bytes);
    for (float& value : row) value = scales_ ? value * number_ : number_;
    ggml_backend_tensor_set(&output, row.data(), at, bytes);
  });
}

std::expected<std::uint64_t, std::string> Change::count(const ggml_tensor& output,
                                                        std::uint32_t n_heads) const {
  return for_each_row(output, n_heads, [](std::size_t, std::size_t) {});
}

std::vector<std::string> changeable_parts(const ggml_tensor& output, std::uint32_t n_heads) {
  if (!Change::parse("zero")->count(output, n_heads)) return {};
  std::vector<std::string> parts = {"all", "indices"};
  if (Change::parse("zero head 0")->count(output, n_heads)) parts.emplace_back("head");
  // Whichever experts this step chose.
  if (output.op == GGML_OP_MUL_MAT_ID) parts.emplace_back("expert");
  return parts;
}

std::string to_text(const MadeChange& made) {
  const bool once = made.last_step == made.place.step;
  return std::format(
      "{}: {} ({} element{}{}){}", once ? to_text(made.place) : to_text(made.place, made.last_step),
      made.text, made.elements, made.elements == 1 ? "" : "s", once ? "" : " each",
      made.ended
          ? std::format("; ended at step {}: no further change can be recorded", made.ended->v)
          : "");
}

}  // namespace tt
