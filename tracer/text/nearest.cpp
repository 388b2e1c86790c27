#include "tracer/text/nearest.h"

#include <algorithm>
#include <cstddef>
#include <format>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "tracer/text/join.h"

namespace tt {

namespace {

constexpr std::size_t kMaxLength = 256;  // the cost is quadratic
constexpr std::size_t kMinPart = 5;      // of a name that is a part of the text

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

// What llama.cpp, other tools or REST interfaces call it, and what it is called here. The names of
// all kinds are in one table: a name is suggested only where it exists.
struct OtherName {
  std::string_view theirs, ours;
};
constexpr OtherName kOtherNames[] = {
    {"decode", "generate"},
    {"generation", "generate"},
    {"tg", "generate"},
    {"prefill", "prompt"},
    {"pp", "prompt"},
    {"mlp", "ffn"},
    {"attn", "attention"},
    {"matmul", "MUL_MAT"},
    {"gemm", "MUL_MAT"},
    {"gpu", "device"},
    {"vram", "device"},
    {"mmap", "disk"},
    {"ssd", "disk"},
    {"pdf", "html"},
    {"png", "dot"},
    {"svg", "dot"},
    {"n_predict", "max_tokens"},
    {"max_new_tokens", "max_tokens"},
    {"input", "prompt"},
    {"query", "sql"},
    {"statement", "sql"},
    {"name", "title"},
    {"offset", "from"},
    {"info", "show"},
    {"stats", "show"},
    {"list", "show"},
    {"top", "hot"},
    {"diff", "compare"},
    {"validate", "parse"},
    {"dump", "parse"},
    {"trace", "record"},
    {"run", "record"},
    {"experts", "moe"},
    {"max_completion_tokens", "max_tokens"},
};

// The name here for `text` (folded); empty: it is none of these, or does not exist.
std::string other_name(std::string_view text, const std::vector<std::string>& names) {
  for (const auto& [theirs, ours] : kOtherNames) {
    if (theirs != text) continue;
    const auto found = std::ranges::find(names, folded(ours), folded);
    if (found != names.end()) return *found;
  }
  return "";
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view text, const std::vector<std::string>& names,
                                       std::size_t most) {
  const std::string wanted = folded(text);
  if (wanted.empty()) return {};
  if (std::string name = other_name(wanted, names); !name.empty()) return {std::move(name)};
  const std::size_t allowed = std::max<std::size_t>(1, wanted.size() / 3);
  // Cost, then distance of the whole name, then order.
  std::vector<std::tuple<std::size_t, std::size_t, std::size_t>> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = folded(names[i]);
    const std::size_t whole = distance(wanted, name, Part::Whole);
    // A similar part of a name is worth less than a similar name.
    const std::size_t part = wanted.size() > 3 ? distance(wanted, name, Part::Any) : whole;
    if (std::min(whole, part) <= allowed) {
      found.emplace_back(std::min(whole, part + 1), whole, i);
    } else if (name.size() >= kMinPart && wanted.contains(name)) {
      found.emplace_back(allowed + 1, whole, i);
    }
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

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& names) {
  const std::string similar = did_you_mean(name, names);
  return std::format("Unknown {0} \"{1}\"{2} The {0}s are {3}.", kind, name,
                     similar.empty() ? "." : similar, join(names));
}

}  // namespace tt
