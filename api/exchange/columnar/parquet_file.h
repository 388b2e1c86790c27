// Writes one Parquet file. Memory holds the encoded pages of a row group, and the column
// values of the current page that differ between its steps.
//
// Row groups and pages are assembled here instead of by Arrow's writer, which processes every
// row: 40 columns of 100 million rows are 4 billion values, few of which are new
// (StepColumns). If the steps of a page have the same values as those of the previous page,
// the encoded page is reused. bench/exchange/export_bench measures the gain.
#pragma once

#include <arrow/type_fwd.h>
#include <parquet/metadata.h>

#include <cstddef>
#include <expected>
#include <memory>
#include <span>
#include <vector>

#include "api/exchange/columnar/columnar_export.h"
#include "api/exchange/columnar/parquet_page.h"
#include "api/exchange/columnar/sink_stream.h"
#include "api/exchange/rows/step_columns.h"

namespace tt::exchange {

// One thread.
class ParquetFile {
 public:
  // `schema` has the fields of `columns`. Columns and sink must outlive the file.
  static std::expected<std::unique_ptr<ParquetFile>, TraceError> open(const StepColumns& columns,
                                                                      const arrow::Schema& schema,
                                                                      const ByteSink& sink,
                                                                      const ParquetSizes& sizes);

  // Appends a step in the form of StepColumns.
  WriteResult write(std::span<const SharedValues> step);
  WriteResult close();

 private:
  struct Column {
    PageEncoder encoder;
    std::vector<SharedValues> steps{};  // of the current page
    std::vector<SharedPage> pages{};    // of the current row group
  };
  ParquetFile(const ByteSink& sink, const ParquetSizes& sizes)
      : sizes_(sizes), stream_(std::make_shared<SinkStream>(sink)) {}
  void start(const StepColumns& columns, const arrow::Schema& schema);
  void end_page();
  void end_group();
  void write_column(Column& column, parquet::ColumnChunkMetaDataBuilder& metadata);
  template <class Work>
  WriteResult without_exceptions(Work work);

  ParquetSizes sizes_;
  std::shared_ptr<SinkStream> stream_;
  std::shared_ptr<parquet::SchemaDescriptor> schema_;
  std::unique_ptr<parquet::FileMetaDataBuilder> footer_;
  std::shared_ptr<const arrow::KeyValueMetadata> metadata_;
  std::vector<Column> columns_;
  PageScratch scratch_;
  std::size_t page_rows_ = 0, group_rows_ = 0;
};

}  // namespace tt::exchange
