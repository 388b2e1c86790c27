#include "tracer/text/nearest.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>

namespace tt {

namespace {

constexpr std::size_t kMaxLength = 256;  // the cost is quadratic

std::string folded(std::string_view text) {
  std::string out(text.substr(0, kMaxLength));
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// Number of inserted, deleted, replaced and exchanged adjacent characters between `text` and
// `name`, or with `Part::Any` between `text` and the most similar part of `name`.
enum class Part : bool { Whole, Any };
std::size_t distance(std::string_view text, std::string_view name, Part part) {
  using Row = std::vector<std::size_t>;  // by length of the part of `name`
  Row before, last(name.size() + 1), row(name.size() + 1);
  for (std::size_t j = 0; j <= name.size(); ++j) last[j] = part == Part::Any ? 0 : j;
  for (std::size_t i = 1; i <= text.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= name.size(); ++j) {
      const bool equal = text[i - 1] == name[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (equal ? 0 : 1)});
      if (i > 1 && j > 1 && text[i - 1] == name[j - 2] && text[i - 2] == name[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return part == Part::Any ? std::ranges::min(last) : last.back();
}

std::string without_digits(std::string_view text) {
  std::string out;
  std::ranges::copy_if(text, std::back_inserter(out), [](char c) { return c < '0' || c > '9'; });
  return out;
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view text, const std::vector<std::string>& names,
                                       std::size_t most) {
  const std::string wanted = folded(text);
  if (wanted.empty()) return {};
  const std::size_t allowed = std::max<std::size_t>(1, wanted.size() / 3);
  // Cost, then distance of the whole name, then order.
  std::vector<std::tuple<std::size_t, std::size_t, std::size_t>> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = folded(names[i]);
    const std::size_t whole = distance(wanted, name, Part::Whole);
    // A similar part of a name is worth less than a similar name.
    const std::size_t part = wanted.size() > 3 ? distance(wanted, name, Part::Any) : whole;
    if (std::min(whole, part) <= allowed) found.emplace_back(std::min(whole, part + 1), whole, i);
  }
  std::ranges::sort(found);
  std::vector<std::string> nearest;
  std::set<std::string> seen;
  for (const auto& [cost, whole, i] : found)
    if (nearest.size() < most && seen.insert(without_digits(names[i])).second)
      nearest.push_back(names[i]);
  return nearest;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& names) {
  const std::vector<std::string> nearest = nearest_names(text, names);
  std::string out;
  for (std::size_t i = 0; i < nearest.size(); ++i)
    out += (i == 0 ? ". Did you mean " : i + 1 < nearest.size() ? ", " : " or ") + nearest[i];
  return out.empty() ? out : out + "?";
}

}  // namespace tt
