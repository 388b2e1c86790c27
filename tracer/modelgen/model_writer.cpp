#include "tracer/modelgen/model_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <format>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "tracer/modelgen/detail/weights.h"
#include "tracer/modelgen/model_plan.h"

namespace tt::modelgen {
namespace {

namespace fs = std::filesystem;
using Kind = ModelError::Kind;

struct FileCloser {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

std::unexpected<ModelError> io_error(const fs::path& path, int code) {
  return std::unexpected(
      ModelError{Kind::Io, std::format("{}: {}", path.string(), std::strerror(code))});
}

// Removes files that were not renamed.
class PartialFiles {
 public:
  PartialFiles() = default;
  PartialFiles(const PartialFiles&) = delete;
  PartialFiles& operator=(const PartialFiles&) = delete;
  ~PartialFiles() {
    for (const fs::path& path : finals_) {
      std::error_code ignored;
      fs::remove(partial(path), ignored);
    }
  }

  fs::path add(const fs::path& final_path) {
    finals_.push_back(final_path);
    return partial(final_path);
  }

  // Renames the first file last, because it is the one that is loaded.
  std::expected<std::vector<fs::path>, ModelError> rename_all() {
    for (std::size_t i = finals_.size(); i-- > 0;) {
      std::error_code error;
      fs::rename(partial(finals_[i]), finals_[i], error);
      if (error) {
        return io_error(finals_[i], error.value());
      }
    }
    return std::exchange(finals_, {});
  }

 private:
  static fs::path partial(const fs::path& path) { return path.string() + ".partial"; }
  std::vector<fs::path> finals_;
};

constexpr int kMaxSplits = UINT16_MAX;  // type of split.count in GGUF

fs::path split_path(const fs::path& path, int number, int count) {
  fs::path stem = path;
  if (stem.extension() == ".gguf") {
    stem.replace_extension();
  }
  return stem.string() + std::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

// Splits the tensors into contiguous, non-empty ranges of about equal size in bytes.
std::vector<std::span<const PlannedTensor>> split_tensors(const ModelPlan& plan, int splits) {
  const auto count = static_cast<std::size_t>(splits);
  const std::size_t total = plan.weight_bytes();
  std::vector<std::span<const PlannedTensor>> parts;
  std::size_t begin = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    bytes += plan.tensors[i].bytes();
    const std::size_t tensors_left = plan.tensors.size() - i - 1;
    const std::size_t parts_left = count - parts.size() - 1;
    const bool full = bytes * count >= total * (parts.size() + 1);
    if (tensors_left == 0 || (parts_left > 0 && (full || tensors_left == parts_left))) {
      parts.push_back(std::span(plan.tensors).subspan(begin, i + 1 - begin));
      begin = i + 1;
    }
  }
  return parts;
}

// Header of one file: metadata and its tensors with types and sizes.
GgufContext file_header(const ModelPlan& plan, std::span<const PlannedTensor> tensors, int number,
                        int count) {
  GgufContext header(gguf_init_empty());
  if (number == 0) {
    gguf_set_kv(header.get(), plan.metadata.get());
  }
  if (count > 1) {
    gguf_set_val_u16(header.get(), "split.no", static_cast<std::uint16_t>(number));
    gguf_set_val_u16(header.get(), "split.count", static_cast<std::uint16_t>(count));
    gguf_set_val_i32(header.get(), "split.tensors.count",
                     static_cast<std::int32_t>(plan.tensors.size()));
  }
  const GgmlContext scratch(ggml_init({.mem_size = ggml_tensor_overhead() * (tensors.size() + 1),
                                       .mem_buffer = nullptr,
                                       .no_alloc = true}));
  for (const PlannedTensor& tensor : tensors) {
    ggml_tensor* described = ggml_new_tensor(scratch.get(), tensor.type,
                                             static_cast<int>(tensor.ne.size()), tensor.ne.data());
    ggml_set_name(described, tensor.name.c_str());
    gguf_add_tensor(header.get(), described);
  }
  return header;
}

// Output file. Keeps the first error; later writes are ignored.
class Output {
 public:
  explicit Output(const fs::path& path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    if (!file_) {
      error_ = errno;
    }
  }

  bool write(std::span<const std::byte> bytes) {
    if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
      error_ = errno != 0 ? errno : EIO;
    }
    written_ += bytes.size();
    return error_ == 0;
  }

  bool pad(std::size_t alignment) {
    static constexpr std::byte kZeros[256] = {};
    const std::size_t over = written_ % alignment;
    return over == 0 || write(std::span(kZeros).first(alignment - over));
  }

  std::expected<std::uint64_t, ModelError> close() {
    if (error_ == 0 && std::fclose(file_.release()) != 0) {
      error_ = errno;
    }
    if (error_ != 0) {
      return io_error(path_, error_);
    }
    return written_;
  }

 private:
  fs::path path_;
  File file_;
  int error_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace

std::vector<fs::path> model_files(const ModelSpec& spec, const fs::path& path) {
  if (spec.splits <= 1) return {path};
  std::vector<fs::path> files;
  const int count = std::min(spec.splits, kMaxSplits);
  for (int number = 0; number < count; ++number) files.push_back(split_path(path, number, count));
  return files;
}

std::expected<WriteReport, ModelError> write_model(const ModelSpec& spec, const fs::path& path,
                                                   const Progress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  const auto plan = plan_model(spec);
  if (!plan) {
    return std::unexpected(plan.error());
  }
  const std::uint64_t total = plan->weight_bytes();
  const auto parts = split_tensors(*plan, spec.splits);
  detail::WeightSource weights(spec.seed);
  PartialFiles files;
  WriteReport report{.files = {}, .tensors = plan->tensors.size(), .bytes = 0, .took = {}};
  std::uint64_t done = 0;
  bool cancelled = false;

  const std::vector<fs::path> targets = model_files(spec, path);
  for (int number = 0; number < spec.splits; ++number) {
    const auto tensors = parts[static_cast<std::size_t>(number)];
    Output output(files.add(targets[static_cast<std::size_t>(number)]));

    const GgufContext header = file_header(*plan, tensors, number, spec.splits);
    std::vector<std::byte> head(gguf_get_meta_size(header.get()));
    gguf_get_meta_data(header.get(), head.data());
    bool ok = output.write(head);
    for (const PlannedTensor& tensor : tensors) {
      if (!ok) {
        break;
      }
      ok = weights.produce(tensor, [&](std::span<const std::byte> bytes) {
        done += bytes.size();
        cancelled = progress && !progress(done, total);
        return !cancelled && output.write(bytes);
      });
      ok = ok && output.pad(gguf_get_alignment(header.get()));
    }
    if (cancelled) {
      return std::unexpected(ModelError{Kind::Cancelled, "cancelled; nothing was written"});
    }
    const auto written = output.close();
    if (!written) {
      return std::unexpected(written.error());
    }
    report.bytes += *written;
  }
  auto names = files.rename_all();
  if (!names) {
    return std::unexpected(names.error());
  }
  report.files = std::move(*names);
  report.took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  return report;
}

}  // namespace tt::modelgen
