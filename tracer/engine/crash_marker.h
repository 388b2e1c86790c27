// Records on disk which model was being evaluated when the process crashed, so that the next start
// does not load it again without being asked. A model file can pass the check in the child process
// (model_check.h) and still crash the library later.
//
// A handler of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT writes the file; then the earlier
// handler or the default action ends the process. A process that is killed (SIGKILL, power loss)
// leaves no file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tt {

class CrashMarker {
 public:
  // `file` is written by a crash of this process, and contains the crashes of earlier ones.
  explicit CrashMarker(std::filesystem::path file);
  ~CrashMarker();
  CrashMarker(const CrashMarker&) = delete;
  CrashMarker& operator=(const CrashMarker&) = delete;

  // Installs the signal handlers, which refer to this object. Once per process.
  void install();

  // While it exists, a crash of the process is attributed to `model`. Any thread; create and
  // destroy it on the thread that evaluates.
  class Evaluation {
   public:
    Evaluation(CrashMarker* marker, const std::filesystem::path& model);  // null: no effect
    ~Evaluation();
    Evaluation(const Evaluation&) = delete;
    Evaluation& operator=(const Evaluation&) = delete;

   private:
    const std::string model_;
    void* slot_ = nullptr;
  };

  // The signal, for example "SIGSEGV", that ended an earlier process while it evaluated `model`.
  // nullopt: none, or the model's file was changed since.
  std::optional<std::string> crash_of(const std::filesystem::path& model) const;
  // Removes the model from the file: the user asked to load it again.
  void forget(const std::filesystem::path& model);

 private:
  struct Entry {
    std::string signal, model;
  };
  std::vector<Entry> entries() const;

  const std::filesystem::path file_;
};

}  // namespace tt
