// Changes the entry of a tensor in the header of a GGUF file: its type, position or name.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace tt::test {

class TensorEntry {
 public:
  // `file`: the bytes of a GGUF file that has this tensor; must outlive this object.
  TensorEntry(std::string& file, const std::string& name) : file_(file), size_(name.size()) {
    std::string with_length(sizeof(std::uint64_t), '\0');
    const std::uint64_t length = name.size();
    std::memcpy(with_length.data(), &length, sizeof length);
    const std::size_t found = file.find(with_length + name);
    if (found == std::string::npos) {
      ADD_FAILURE() << "no tensor " << name;
      return;
    }
    name_ = found + sizeof length;
  }

  void set_type(std::int32_t type) { put(type_at(), type); }
  void set_offset(std::uint64_t offset) { put(type_at() + sizeof(std::int32_t), offset); }
  std::uint64_t offset() const { return get<std::uint64_t>(type_at() + sizeof(std::int32_t)); }
  void set_first_dimension(std::int64_t n) { put(name_ + size_ + sizeof(std::uint32_t), n); }
  // Of the same length.
  void set_name(const std::string& name) {
    ASSERT_EQ(name.size(), size_);
    file_.replace(name_, size_, name);
  }

 private:
  template <class T>
  void put(std::size_t at, T value) {
    std::memcpy(file_.data() + at, &value, sizeof value);
  }
  template <class T>
  T get(std::size_t at) const {
    T value{};
    std::memcpy(&value, file_.data() + at, sizeof value);
    return value;
  }
  std::size_t type_at() const {
    const std::size_t dims = name_ + size_;
    return dims + sizeof(std::uint32_t) + get<std::uint32_t>(dims) * sizeof(std::int64_t);
  }

  std::string& file_;
  std::size_t name_ = 0, size_;
};

}  // namespace tt::test
