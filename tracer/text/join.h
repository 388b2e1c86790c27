// Joins the elements of a range into one text: "a, b, c".
#pragma once

#include <format>
#include <functional>
#include <iterator>
#include <ranges>
#include <string>

namespace tt {

// `text` returns what std::format() prints for an element; by default the element itself.
template <std::ranges::input_range Elements, class Text = std::identity>
std::string join(Elements&& elements, Text text = {}) {
  std::string out;
  const char* separator = "";
  for (auto&& element : elements) {
    std::format_to(std::back_inserter(out), "{}{}", separator, std::invoke(text, element));
    separator = ", ";
  }
  return out;
}

}  // namespace tt
