#include "api/exchange/columnar_export.h"

#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>
#include <parquet/properties.h>

#include <format>
#include <optional>
#include <utility>

#include "api/exchange/arrow_rows.h"

namespace tt::exchange {
namespace {

constexpr std::size_t kBatchRows = 64u << 10;
constexpr std::int64_t kGroupRows = 1 << 20;
constexpr std::int64_t kDictionaryBytes = 16 << 20;  // of words: never falls back to plain text
constexpr std::int64_t kPageBytes = 1 << 20;

// Arrow writes into a sink; the sink's own error is kept for who asked.
class SinkStream final : public arrow::io::OutputStream {
 public:
  explicit SinkStream(const ByteSink& sink) : sink_(sink) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  arrow::Status Write(const void* data, std::int64_t bytes) override {
    auto written = sink_({static_cast<const char*>(data), static_cast<std::size_t>(bytes)});
    if (!written) {
      error_ = written.error();
      return arrow::Status::IOError(error_->message);
    }
    position_ += bytes;
    return arrow::Status::OK();
  }
  using arrow::io::OutputStream::Write;
  TraceError error(const arrow::Status& status) const {
    return error_ ? *error_ : trace_error(status);
  }

 private:
  const ByteSink& sink_;
  std::optional<TraceError> error_;
  std::int64_t position_ = 0;
  bool closed_ = false;
};

// Numbers that hardly change from row to row are smaller as differences than as a
// dictionary. bench/exchange/export_bench says how fast all of it is.
std::shared_ptr<parquet::WriterProperties> parquet_properties() {
  parquet::WriterProperties::Builder builder;
  builder.compression(parquet::Compression::LZ4)
      ->dictionary_pagesize_limit(kDictionaryBytes)
      ->data_pagesize(kPageBytes)
      ->max_row_group_length(kGroupRows)
      ->version(parquet::ParquetVersion::PARQUET_2_6)
      ->created_by("tensor-trace");
  for (const AccessColumn& column : access_columns()) {
    if (column.type == CellType::Text || column.type == CellType::Flag) continue;
    builder.disable_dictionary(column.name);
    if (column.type == CellType::Float) continue;
    builder.encoding(column.name, parquet::Encoding::DELTA_BINARY_PACKED);
  }
  return builder.build();
}

class ParquetFile {
 public:
  explicit ParquetFile(const ByteSink& sink) : stream_(std::make_shared<SinkStream>(sink)) {}

  Written open(const std::shared_ptr<arrow::Schema>& schema) {
    // Without Arrow's own schema beside Parquet's: texts are texts for every reader.
    auto writer = parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), stream_,
                                                   parquet_properties(),
                                                   parquet::default_arrow_writer_properties());
    if (!writer.ok()) return std::unexpected(stream_->error(writer.status()));
    writer_ = *std::move(writer);
    return {};
  }
  Written write(ArrowRows& rows) {
    const auto batch = rows.take();
    if (!batch) return std::unexpected(batch.error());
    return said(writer_->WriteRecordBatch(**batch));
  }
  Written close() { return said(writer_->Close()); }

 private:
  Written said(const arrow::Status& status) {
    if (status.ok()) return {};
    return std::unexpected(stream_->error(status));
  }
  std::shared_ptr<SinkStream> stream_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

// Arrow and Parquet throw in places; here that becomes a value.
template <class Work>
Written without_exceptions(Work work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return std::unexpected(TraceError{TraceError::Kind::Io, error.what()});
  }
}

// One part of a folder, being written.
struct Part {
  std::unique_ptr<OutputFile> output;
  ByteSink sink;
  std::unique_ptr<ParquetFile> file;
  std::filesystem::path folder;  // renamed when its last step is known
  StepId first{};
  std::uint64_t rows = 0;
};

std::filesystem::path steps_folder(StepId first, StepId last) {
  return std::format("steps={}-{}", first.v, last.v);
}

}  // namespace

Written export_parquet(SessionRows& rows, const ByteSink& sink, const KeepGoing& keep_going) {
  return without_exceptions([&]() -> Written {
    auto arrow_rows = ArrowRows::make(rows, true);
    if (!arrow_rows) return std::unexpected(arrow_rows.error());
    ParquetFile file(sink);
    if (const Written opened = file.open(arrow_rows->schema()); !opened) return opened;
    const Written walked = rows.for_each_step(
        [&](const StepRows& step) -> Written {
          arrow_rows->append(step);
          return arrow_rows->size() < kBatchRows ? Written{} : file.write(*arrow_rows);
        },
        keep_going);
    if (!walked) return walked;
    if (const Written last = file.write(*arrow_rows); !last) return last;
    return file.close();
  });
}

Written export_arrow(SessionRows& rows, ArrowForm form, const ByteSink& sink,
                     const KeepGoing& keep_going) {
  return without_exceptions([&]() -> Written {
    auto arrow_rows = ArrowRows::make(rows, true);
    if (!arrow_rows) return std::unexpected(arrow_rows.error());
    const auto stream = std::make_shared<SinkStream>(sink);
    const auto said = [&](const arrow::Status& status) -> Written {
      if (status.ok()) return {};
      return std::unexpected(stream->error(status));
    };
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    options.use_threads = false;
    auto writer = form == ArrowForm::File
                      ? arrow::ipc::MakeFileWriter(stream, arrow_rows->schema(), options)
                      : arrow::ipc::MakeStreamWriter(stream, arrow_rows->schema(), options);
    if (!writer.ok()) return said(writer.status());
    const auto write = [&]() -> Written {
      const auto batch = arrow_rows->take();
      if (!batch) return std::unexpected(batch.error());
      return said((*writer)->WriteRecordBatch(**batch));
    };
    const Written walked = rows.for_each_step(
        [&](const StepRows& step) -> Written {
          arrow_rows->append(step);
          return arrow_rows->size() < kBatchRows ? Written{} : write();
        },
        keep_going);
    if (!walked) return walked;
    if (const Written last = write(); !last) return last;
    return said((*writer)->Close());
  });
}

Written export_parquet_folder(const SessionReader& reader, ExportRange range,
                              const std::filesystem::path& folder, std::uint64_t rows_per_part,
                              const KeepGoing& keep_going) {
  return without_exceptions([&]() -> Written {
    auto rows = SessionRows::open(reader, range);
    if (!rows) return std::unexpected(rows.error());
    auto arrow_rows = ArrowRows::make(*rows, false);
    if (!arrow_rows) return std::unexpected(arrow_rows.error());
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    auto output = OutputFolder::create(folder / ("session=" + rows->session().id));
    if (!output) return std::unexpected(output.error());

    std::optional<Part> part;
    const auto begin = [&](StepId first) -> Written {
      part.emplace();
      part->first = first;
      part->folder = output->path() / std::format("steps={}", first.v);
      std::filesystem::create_directory(part->folder, failed);
      auto file = OutputFile::create(part->folder / "part.parquet");
      if (!file) return std::unexpected(file.error());
      part->output = std::make_unique<OutputFile>(*std::move(file));
      part->sink = part->output->sink();
      part->file = std::make_unique<ParquetFile>(part->sink);
      return part->file->open(arrow_rows->schema());
    };
    const auto end = [&](StepId last) -> Written {
      if (const Written written = part->file->write(*arrow_rows); !written) return written;
      if (const Written closed = part->file->close(); !closed) return closed;
      if (const Written kept = part->output->commit(); !kept) return kept;
      std::filesystem::rename(part->folder, output->path() / steps_folder(part->first, last));
      part.reset();
      return {};
    };
    StepId last = rows->first();
    const Written walked = rows->for_each_step(
        [&](const StepRows& step) -> Written {
          last = step.scope.step->id;
          if (!part) {
            if (const Written begun = begin(last); !begun) return begun;
          }
          arrow_rows->append(step);
          part->rows += step.rows.size();
          if (part->rows >= rows_per_part) return end(last);
          return arrow_rows->size() < kBatchRows ? Written{} : part->file->write(*arrow_rows);
        },
        keep_going);
    if (!walked) return walked;
    if (part) {
      if (const Written ended = end(last); !ended) return ended;
    }
    return output->commit();
  });
}

}  // namespace tt::exchange
