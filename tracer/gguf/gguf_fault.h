// What is wrong with a model file. Found without llama.cpp, so that every program says the same
// about the same file.
#pragma once

#include <cstdint>
#include <string>

namespace tt {

struct GgufFault {
  enum class Kind : std::uint8_t {
    Unreadable,   // cannot be opened, or is not a regular file
    OtherFormat,  // not GGUF: a web page, an archive, weights of another program...
    Incomplete,   // empty, or zeros: the download has not finished
    ByteOrder,    // big-endian
    Version,      // a version of GGUF that llama.cpp does not read
    Damaged,      // the header cannot be read
    Truncated,    // a tensor ends beyond the end of the file
    UnknownType,  // a quantization type of a fork, of a newer ggml, or a removed one
    Unsupported,  // a shape or name that ggml does not allow
    Duplicate,    // two tensors with the same name
    Misplaced,    // a tensor is not where llama.cpp expects it: it overlaps another, or after a gap
    Joined,       // the parts of a split model in one file
    WrongPart,    // a part of a split model is missing, or has the name of another part
    // The model can be loaded nevertheless:
    SecondFile,  // another GGUF file follows after the last tensor
    Holes,       // a large part of the weights was never written
  };
  Kind kind = Kind::Damaged;
  std::string message;   // with the path; says what to do
  std::string tensor{};  // the tensor concerned; empty: none
  std::string value{};   // what was found there, such as the number of the type

  bool is_note() const { return kind == Kind::SecondFile || kind == Kind::Holes; }
  friend bool operator==(const GgufFault&, const GgufFault&) = default;
};

}  // namespace tt
