// Builds a small GGUF file with string metadata and F32 tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tt::test {

class GgufBytes {
 public:
  GgufBytes& text(std::string_view key, std::string_view value) {
    texts_.emplace_back(key, value);
    return *this;
  }
  GgufBytes& tensor(std::string_view name, std::uint64_t elements) {
    tensors_.emplace_back(name, elements);
    return *this;
  }
  std::string bytes() const {
    constexpr std::size_t kAlignment = 32;
    std::string out = "GGUF";
    number(out, std::uint32_t{3});
    number(out, std::uint64_t{tensors_.size()});
    number(out, std::uint64_t{texts_.size()});
    for (const auto& [key, value] : texts_) {
      string(out, key);
      number(out, std::uint32_t{8});
      string(out, value);
    }
    std::uint64_t data = 0;
    for (const auto& [name, elements] : tensors_) {
      string(out, name);
      number(out, std::uint32_t{1});
      number(out, elements);
      number(out, std::uint32_t{0});
      number(out, data);
      data += (4 * elements + kAlignment - 1) / kAlignment * kAlignment;
    }
    out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment + data);
    return out;
  }

 private:
  template <class T>
  static void number(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void string(std::string& out, const std::string& text) {
    number(out, std::uint64_t{text.size()});
    out += text;
  }
  std::vector<std::pair<std::string, std::string>> texts_;
  std::vector<std::pair<std::string, std::uint64_t>> tensors_;
};

}  // namespace tt::test
