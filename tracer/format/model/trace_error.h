// Errors of session files. They are expected and are shown to the user.
#pragma once

#include <expected>
#include <string>

namespace tt {

struct TraceError {
  enum class Kind {
    NotFound,
    NotASession,
    NewerVersion,
    Damaged,
    Running,     // the session is being recorded and cannot be changed
    Exists,      // a file of this name exists
    NotManaged,  // the file may only be read
    DiskFull,
    ReadOnly,
    Io,
    WalUnsupported,
    Cancelled  // the caller cancelled the operation
  };
  Kind kind;
  std::string message;  // what is wrong and what to do
};

template <class Value>
using Expected = std::expected<Value, TraceError>;
using Status = std::expected<void, TraceError>;

inline TraceError cancelled_error() {
  return {TraceError::Kind::Cancelled, "The operation was cancelled. Try again."};
}

}  // namespace tt
