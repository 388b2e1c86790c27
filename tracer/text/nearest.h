// "Did you mean": the names that are most similar to one that does not exist.
#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tt {

inline constexpr std::size_t kMaxSuggestions = 3;

// The most similar names, the best first; empty if none is similar. If `text` is what other
// programs call one of them, only that one. Letters of either case are equal, and `text` may be
// similar to a part of a name, or contain a name. Of names that differ only in numbers
// (blk.0.attn_q.weight, blk.1.attn_q.weight) only the first is returned.
std::vector<std::string> nearest_names(std::string_view text, const std::vector<std::string>& names,
                                       std::size_t most = kMaxSuggestions);

// ". Did you mean a or b?", to be appended to an error message without a final period; empty if no
// name is similar.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& names);

// "Unknown field "x". Did you mean y? The fields are y, z.", of a kind such as "field".
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& names);

template <std::ranges::input_range Names>
  requires(!std::same_as<std::remove_cvref_t<Names>, std::vector<std::string>>)
std::string did_you_mean(std::string_view text, Names&& names) {
  return did_you_mean(text,
                      std::vector<std::string>(std::ranges::begin(names), std::ranges::end(names)));
}

}  // namespace tt
