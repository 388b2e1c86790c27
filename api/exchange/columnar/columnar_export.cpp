#include "api/exchange/columnar/columnar_export.h"

#include <arrow/api.h>
#include <arrow/ipc/writer.h>

#include <format>
#include <optional>
#include <utility>

#include "api/exchange/columnar/arrow_rows.h"
#include "api/exchange/columnar/parquet_file.h"
#include "api/exchange/columnar/sink_stream.h"
#include "api/exchange/rows/session_metadata.h"
#include "api/exchange/rows/step_columns.h"

namespace tt::exchange {
namespace {

constexpr std::size_t kBatchRows = 64u << 10;

// Arrow and Parquet throw in some places; converts exceptions to errors.
template <class Work>
WriteResult without_exceptions(Work work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return std::unexpected(TraceError{TraceError::Kind::Io, error.what()});
  }
}

// An output file of rows, of any format.
class RowFile {
 public:
  virtual ~RowFile() = default;
  virtual WriteResult write(std::span<const SharedValues> step) = 0;
  virtual WriteResult close() = 0;
};
using OpenedRows = std::expected<std::unique_ptr<RowFile>, TraceError>;

class ParquetRows final : public RowFile {
 public:
  static OpenedRows open(const StepColumns& columns, const arrow::Schema& schema,
                         const ByteSink& sink, const ParquetSizes& sizes) {
    auto file = ParquetFile::open(columns, schema, sink, sizes);
    if (!file) return std::unexpected(file.error());
    return std::make_unique<ParquetRows>(*std::move(file));
  }
  explicit ParquetRows(std::unique_ptr<ParquetFile> file) : file_(std::move(file)) {}
  WriteResult write(std::span<const SharedValues> step) override { return file_->write(step); }
  WriteResult close() override { return file_->close(); }

 private:
  std::unique_ptr<ParquetFile> file_;
};

class ArrowBatches final : public RowFile {
 public:
  static OpenedRows open(const StepColumns& columns, const std::shared_ptr<arrow::Schema>& schema,
                         ArrowIpcFormat form, const ByteSink& sink) {
    auto stream = std::make_shared<SinkStream>(sink);
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    options.use_threads = false;
    auto writer = form == ArrowIpcFormat::File
                      ? arrow::ipc::MakeFileWriter(stream, schema, options)
                      : arrow::ipc::MakeStreamWriter(stream, schema, options);
    if (!writer.ok()) return std::unexpected(stream->check(writer.status()).error());
    return std::make_unique<ArrowBatches>(ArrowRows(columns, schema), std::move(stream),
                                          *std::move(writer));
  }
  ArrowBatches(ArrowRows rows, std::shared_ptr<SinkStream> stream,
               std::shared_ptr<arrow::ipc::RecordBatchWriter> writer)
      : rows_(std::move(rows)), stream_(std::move(stream)), writer_(std::move(writer)) {}

  WriteResult write(std::span<const SharedValues> step) override {
    rows_.append(step);
    return rows_.size() < kBatchRows ? WriteResult{} : flush();
  }
  WriteResult close() override {
    return flush().and_then([&] { return stream_->check(writer_->Close()); });
  }

 private:
  WriteResult flush() {
    const auto batch = rows_.take();
    if (!batch) return std::unexpected(batch.error());
    return stream_->check(writer_->WriteRecordBatch(**batch));
  }
  ArrowRows rows_;
  std::shared_ptr<SinkStream> stream_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

// Writes all rows to the file returned by `open`.
template <class Open>
WriteResult write_rows(SessionRows& rows, const ContinueCheck& keep_going, Open open) {
  return without_exceptions([&]() -> WriteResult {
    auto columns = StepColumns::make(rows, true);
    if (!columns) return std::unexpected(columns.error());
    const auto schema = arrow_schema(rows, *columns);
    if (!schema) return std::unexpected(schema.error());
    const OpenedRows file = open(*columns, *schema);
    if (!file) return std::unexpected(file.error());
    return rows
        .for_each_step(
            [&](const StepRows& step) -> WriteResult {
              return step.rows.empty() ? WriteResult{} : (*file)->write(columns->of(step));
            },
            keep_going)
        .and_then([&] { return (*file)->close(); });
  });
}

// A part that is being written.
struct Part {
  std::unique_ptr<OutputFile> output;
  ByteSink sink;
  std::unique_ptr<RowFile> file;
  std::filesystem::path folder;  // renamed when the last step is known
  StepId first{};
  std::uint64_t rows = 0;
};

std::filesystem::path steps_folder(StepId first, StepId last) {
  return std::format("steps={}-{}", first.v, last.v);
}

}  // namespace

WriteResult export_parquet(SessionRows& rows, const ByteSink& sink, const ContinueCheck& keep_going,
                           const ParquetSizes& sizes) {
  return write_rows(rows, keep_going, [&](const StepColumns& columns, const auto& schema) {
    return ParquetRows::open(columns, *schema, sink, sizes);
  });
}

WriteResult export_arrow(SessionRows& rows, ArrowIpcFormat form, const ByteSink& sink,
                         const ContinueCheck& keep_going) {
  return write_rows(rows, keep_going, [&](const StepColumns& columns, const auto& schema) {
    return ArrowBatches::open(columns, schema, form, sink);
  });
}

WriteResult export_parts(const SessionReader& reader, ExportRange range, PartFormat form,
                         const std::filesystem::path& folder, std::uint64_t rows_per_part,
                         const ContinueCheck& keep_going) {
  return without_exceptions([&]() -> WriteResult {
    auto rows = SessionRows::open(reader, range);
    if (!rows) return std::unexpected(rows.error());
    auto columns = StepColumns::make(*rows, false);
    if (!columns) return std::unexpected(columns.error());
    const auto schema = arrow_schema(*rows, *columns);
    if (!schema) return std::unexpected(schema.error());
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    auto output =
        OutputFolder::create(folder / ("session=" + safe_file_id(rows->session().id, "unnamed")));
    if (!output) return std::unexpected(output.error());

    std::optional<Part> part;
    const auto begin = [&](StepId first) -> WriteResult {
      part.emplace();
      part->first = first;
      part->folder = output->path() / std::format("steps={}", first.v);
      std::filesystem::create_directory(part->folder, failed);
      const bool parquet = form == PartFormat::Parquet;
      auto made = OutputFile::create(part->folder / (parquet ? "part.parquet" : "part.arrow"));
      if (!made) return std::unexpected(made.error());
      part->output = std::make_unique<OutputFile>(*std::move(made));
      part->sink = part->output->sink();
      auto file = parquet ? ParquetRows::open(*columns, **schema, part->sink, {})
                          : ArrowBatches::open(*columns, *schema, ArrowIpcFormat::File, part->sink);
      if (!file) return std::unexpected(file.error());
      part->file = *std::move(file);
      return {};
    };
    const auto end = [&](StepId last) -> WriteResult {
      if (const WriteResult closed = part->file->close(); !closed) return closed;
      if (const WriteResult kept = part->output->commit(); !kept) return kept;
      std::filesystem::rename(part->folder, output->path() / steps_folder(part->first, last));
      part.reset();
      return {};
    };
    StepId last = rows->first();
    const WriteResult walked = rows->for_each_step(
        [&](const StepRows& step) -> WriteResult {
          last = step.scope.step->id;
          if (!part) {
            if (const WriteResult begun = begin(last); !begun) return begun;
          }
          if (step.rows.empty()) return {};
          if (const WriteResult put = part->file->write(columns->of(step)); !put) return put;
          part->rows += step.rows.size();
          return part->rows >= rows_per_part && step.last_part ? end(last) : WriteResult{};
        },
        keep_going);
    if (!walked) return walked;
    if (part) {
      if (const WriteResult ended = end(last); !ended) return ended;
    }
    return output->commit();
  });
}

}  // namespace tt::exchange
