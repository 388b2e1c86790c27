#include "api/exchange/columnar/parquet_file.h"

#include <arrow/api.h>
#include <parquet/arrow/schema.h>
#include <parquet/column_page.h>
#include <parquet/column_writer.h>
#include <parquet/exception.h>
#include <parquet/file_writer.h>
#include <parquet/properties.h>

#include <string_view>
#include <utility>

namespace tt::exchange {
namespace {

using parquet::Encoding;

constexpr std::string_view kMagic = "PAR1";
constexpr std::size_t kMaxStatisticBytes =
    4096;  // maximum bytes of a text; same as in Arrow's writer

std::shared_ptr<parquet::WriterProperties> properties() {
  return parquet::WriterProperties::Builder()
      .compression(PageEncoder::kCompression)
      ->version(parquet::ParquetVersion::PARQUET_2_6)
      ->created_by("tensor-trace")
      ->build();
}

parquet::EncodedStatistics statistics_of(const PageEncoder& encoder,
                                         std::span<const SharedPage> pages) {
  std::int64_t nulls = 0;
  const ParquetPage* least = nullptr;
  const ParquetPage* greatest = nullptr;
  for (const SharedPage& page : pages) {
    nulls += static_cast<std::int64_t>(page->nulls);
    if (!page->has_range) continue;
    if (least == nullptr || encoder.less(page->least, least->least)) least = page.get();
    if (greatest == nullptr || encoder.less(greatest->greatest, page->greatest))
      greatest = page.get();
  }
  parquet::EncodedStatistics out;
  out.set_null_count(nulls);
  if (least != nullptr) {
    out.set_min(encoder.statistic(least->least));
    out.set_max(encoder.statistic(greatest->greatest));
    out.ApplyStatSizeLimits(kMaxStatisticBytes);
  }
  return out;
}

}  // namespace

// Parquet throws in some places, also for Arrow errors; converts exceptions to errors.
template <class Work>
WriteResult ParquetFile::without_exceptions(Work work) {
  try {
    work();
    return {};
  } catch (const std::exception& error) {
    return std::unexpected(stream_->error(arrow::Status::IOError(error.what())));
  }
}

std::expected<std::unique_ptr<ParquetFile>, TraceError> ParquetFile::open(
    const StepColumns& columns, const arrow::Schema& schema, const ByteSink& sink,
    const ParquetSizes& sizes) {
  std::unique_ptr<ParquetFile> file(new ParquetFile(sink, sizes));
  return file->without_exceptions([&] { file->start(columns, schema); }).transform([&] {
    return std::move(file);
  });
}

void ParquetFile::start(const StepColumns& columns, const arrow::Schema& schema) {
  const auto how = properties();
  PARQUET_THROW_NOT_OK(parquet::arrow::ToParquetSchema(&schema, *how, &schema_));
  footer_ = parquet::FileMetaDataBuilder::Make(schema_.get(), how);
  metadata_ = schema.metadata();
  for (const StepColumns::Column& column : columns.columns())
    columns_.push_back({.encoder = PageEncoder(column)});
  PARQUET_THROW_NOT_OK(stream_->Write(kMagic));
}

WriteResult ParquetFile::write(std::span<const SharedValues> step) {
  for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].steps.push_back(step[i]);
  page_rows_ += step.front()->bits.size();
  if (page_rows_ < sizes_.page_rows) return {};
  return without_exceptions([&] {
    end_page();
    if (group_rows_ >= sizes_.group_rows) end_group();
  });
}

void ParquetFile::end_page() {
  for (Column& column : columns_)
    column.pages.push_back(column.encoder.encode(std::exchange(column.steps, {}), scratch_));
  group_rows_ += std::exchange(page_rows_, 0);
}

void ParquetFile::end_group() {
  parquet::RowGroupMetaDataBuilder& group = *footer_->AppendRowGroup();
  group.set_num_rows(static_cast<std::int64_t>(std::exchange(group_rows_, 0)));
  std::int64_t bytes = 0;
  for (Column& column : columns_) {
    write_column(column, *group.NextColumnChunk());
    for (const SharedPage& page : std::exchange(column.pages, {}))
      bytes += static_cast<std::int64_t>(page->uncompressed_bytes);
  }
  group.Finish(bytes);
}

void ParquetFile::write_column(Column& column, parquet::ColumnChunkMetaDataBuilder& metadata) {
  const PageEncoder& encoder = column.encoder;
  const auto writer = parquet::PageWriter::Open(stream_, PageEncoder::kCompression, &metadata);
  const auto words = encoder.dictionary();
  if (words != nullptr) {
    writer->WriteDictionaryPage(parquet::DictionaryPage(
        words, static_cast<std::int32_t>(encoder.words()), Encoding::PLAIN, true));
  }
  for (const SharedPage& page : column.pages) {
    writer->WriteDataPage(parquet::DataPageV1(page->bytes, static_cast<std::int32_t>(page->rows),
                                              encoder.encoding(), Encoding::RLE, Encoding::RLE,
                                              static_cast<std::int64_t>(page->uncompressed_bytes)));
  }
  metadata.SetStatistics(statistics_of(encoder, column.pages));
  writer->Close(words != nullptr, false);
}

WriteResult ParquetFile::close() {
  return without_exceptions([&] {
    if (page_rows_ > 0) end_page();
    if (group_rows_ > 0) end_group();
    parquet::WriteFileMetaData(*footer_->Finish(metadata_), stream_.get());
  });
}

}  // namespace tt::exchange
