#include "cli/terminal/array_text.h"

#include <format>

namespace tt::cli {

std::string array_text(const std::array<std::uint64_t, 4>& ne, std::span<const float> values) {
  constexpr std::uint64_t kEdge = 3;
  // Calls `each(i)`, or `skipped()` for those in the middle.
  const auto places = [](std::uint64_t n, const auto& each, const auto& skipped) {
    for (std::uint64_t i = 0; i < n; ++i) {
      if (i == kEdge && n > 2 * kEdge) {
        skipped();
        i = n - kEdge;
      }
      each(i);
    }
  };
  double sum = 0;
  for (const float value : values) sum += double{value};
  std::string text = "    [\n";
  places(
      ne[3],
      [&](std::uint64_t i3) {
        places(
            ne[2],
            [&](std::uint64_t i2) {
              text += "        [\n";
              places(
                  ne[1],
                  [&](std::uint64_t i1) {
                    text += "            [";
                    const char* separator = "";
                    places(
                        ne[0],
                        [&](std::uint64_t i0) {
                          const std::uint64_t at = ((i3 * ne[2] + i2) * ne[1] + i1) * ne[0] + i0;
                          text += std::format("{}{:12.4f}", separator, values[at]);
                          separator = ", ";
                        },
                        [&] { text += ", ..."; });
                    text += " ],\n";
                  },
                  [&] { text += "            ...,\n"; });
              text += "        ],\n";
            },
            [&] { text += "        ...,\n"; });
      },
      [&] { text += "    ...,\n"; });
  return text + std::format("    ]\n    sum = {:f}\n", sum);
}

}  // namespace tt::cli
