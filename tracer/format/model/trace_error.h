// What can go wrong with a session file: expected, told to the user.
#pragma once

#include <string>

namespace tt {

struct TraceError {
  enum class Kind {
    NotFound,
    NotASession,
    NewerVersion,
    Damaged,
    Running,  // it is being recorded, and stays as it is
    Exists,   // there is one already
    NotOurs,  // a file that is only read
    DiskFull,
    ReadOnly,
    Io,
    WalUnsupported,
    Cancelled  // whoever asked does not want the answer any more
  };
  Kind kind;
  std::string message;  // says what to do
};

inline TraceError cancelled_error() {
  return {TraceError::Kind::Cancelled, "The question was withdrawn. Ask again."};
}

}  // namespace tt
