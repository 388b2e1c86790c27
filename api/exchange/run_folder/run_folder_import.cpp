#include <algorithm>
#include <format>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "api/exchange/import/import.h"
#include "api/exchange/import/imported_row.h"
#include "api/exchange/import/log_lines.h"
#include "api/exchange/recording/recorded_parts.h"
#include "api/exchange/rows/session_metadata.h"
#include "api/exchange/run_folder/run_folder.h"
#include "api/exchange/run_folder/run_metadata.h"
#include "api/exchange/text/csv.h"
#include "tracer/format/file/input_file.h"

namespace tt::exchange {
namespace {

// Memory limits: held for the whole import, and per step (kMaxNameBytes).
constexpr std::uint64_t kMaxConstantsBytes = 128u << 20;
constexpr std::size_t kMaxConstants = 1u << 20;
constexpr std::size_t kMaxNameBytes = 256u << 20;  // bytes of names in the rows of a step

// Converts a field of accesses.csv to the JSON value of a log.
Json json_of(CellType type, const std::string& field) {
  switch (type) {
    case CellType::Text:
      return field;
    case CellType::Flag:
      return field == "true";
    default: {
      Json number = Json::parse(field, nullptr, false);
      return number.is_number() ? number : Json();
    }
  }
}

// The constant fields of every access, by line.
std::expected<std::vector<ImportedRow>, TraceError> constants_in(
    const std::filesystem::path& path) {
  const auto text = read_input(path, kMaxConstantsBytes);
  if (!text) return std::unexpected(text.error());
  if (text->empty()) return std::unexpected(damaged(path, 1, "The header line is missing."));
  std::string_view rest = *text;
  std::vector<const AccessColumn*> columns;  // null: unknown column
  for (const auto& name : take_csv_line(rest)) {
    const auto found = std::ranges::find_if(
        access_columns(), [&](const AccessColumn& column) { return name == column.name; });
    columns.push_back(found == access_columns().end() ? nullptr : &*found);
  }
  std::vector<ImportedRow> rows;
  while (!rest.empty()) {
    if (rows.size() == kMaxConstants)
      return std::unexpected(damaged(
          path, rows.size() + 2, std::format("The file has more than {} lines.", kMaxConstants)));
    const auto fields = take_csv_line(rest);
    if (fields.size() != columns.size())
      return std::unexpected(
          damaged(path, rows.size() + 2, "The number of fields does not match the header."));
    Json json = Json::object();
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (columns[c] != nullptr && fields[c])
        json[columns[c]->name] = json_of(columns[c]->type, *fields[c]);
    ImportedRow row = row_from(json);
    if (json.contains("model_file")) {
      row.range.file = number_in<std::uint32_t>(json, "model_file");
      row.range.length = number_in<std::uint64_t>(json, "file_bytes");
      row.tensor_file_offset = number_in<std::uint64_t>(json, "tensor_file_offset");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

class FolderImport {
 public:
  FolderImport(std::filesystem::path folder, std::filesystem::path session)
      : folder_(std::move(folder)), session_(std::move(session)) {}

  std::expected<ImportCounts, TraceError> run(const ContinueCheck& keep_going) {
    const auto path = folder_ / kMetadata;
    const auto metadata = metadata_in(path);
    if (!metadata) return std::unexpected(metadata.error());
    version_ = number_in<std::uint32_t>(*metadata, "format_version", 1);
    if (flag_in(*metadata, "rows_per_token")) {
      return std::unexpected(TraceError{
          TraceError::Kind::Io,
          path.string() + ": the run folder has one row per token (--per-token) and cannot be "
                          "imported. Export the session without that option."});
    }
    auto constants = constants_in(folder_ / kConstants);
    if (!constants) return std::unexpected(constants.error());
    constants_ = *std::move(constants);
    auto records = InputFile::open(folder_ / kRecords);
    if (!records) return std::unexpected(std::move(records.error()));
    records_ = &records->stream();
    std::optional<InputFile> recording;
    std::error_code none;
    if (std::filesystem::exists(folder_ / kRecording, none)) {
      auto opened = InputFile::open(folder_ / kRecording);
      if (!opened) return std::unexpected(std::move(opened.error()));
      recording.emplace(*std::move(opened));
      recording_ = &recording->stream();
    }
    SessionInfo info = session_from(metadata->at("session"));
    info.id = safe_file_id(info.id, session_.stem().string());
    info.facts.emplace_back("trace.imported_from", "run folder");
    auto builder = SessionBuilder::create(session_, info);
    if (!builder) return std::unexpected(builder.error());
    next_ = next_record();
    const WriteResult steps = for_each_step_in(path, [&](const Json& step) -> WriteResult {
      if (!keep_going()) return std::unexpected(cancelled_error());
      return add_step(*builder, step);
    });
    if (!steps) return std::unexpected(steps.error());
    if (const Status read = records->finished(); !read) return std::unexpected(read.error());
    add_rebuilt_fact(info, builder->rebuilt_steps());
    if (next_) {
      return std::unexpected(
          damaged(folder_ / kRecords, number_, "The step of this record is not in the metadata."));
    }
    if (std::vector<Token> tokens = tokens_from(*metadata); !tokens.empty()) {
      if (WriteResult added = builder->add_tokens(std::move(tokens)); !added)
        return std::unexpected(added.error());
    }
    const Json& session = metadata->at("session");
    const auto losses = session.find("losses");
    const WriteResult done =
        builder->finish(info, losses == session.end() ? LossCounters{} : losses_from(*losses));
    if (!done) return std::unexpected(done.error());
    return imported_;
  }

 private:
  std::optional<AccessRecord> next_record() {
    std::array<char, kRecordBytes> bytes{};
    if (!records_->read(bytes.data(), bytes.size())) return std::nullopt;
    ++number_;
    return record_from(bytes, version_);
  }

  // The parts of step `number`, and those before it of other steps.
  void take_parts(std::uint32_t number) {
    std::string line;
    while (recording_ != nullptr && (part_ || read_line(*recording_, line))) {
      if (!part_) {
        auto parsed = parse_json(line, kImportLimits);
        if (!parsed || !parsed->is_object()) continue;
        part_ = *std::move(parsed);
      }
      if (number_in<std::uint32_t>(*part_, "step", 0) > number) return;
      const std::string event = text_in(*part_, "event");
      if (RecordedParts::is_part(event)) recorded_.take(event, *part_);
      part_.reset();
    }
  }

  WriteResult add_step(SessionBuilder& builder, const Json& json) {
    ImportedStep step;
    begin_step_from(json, step.step);
    step.step.end = Ns{number_in<std::int64_t>(json, "end_ns", step.step.begin.v)};
    step.ops = number_in<std::uint32_t>(json, "ops");
    step.ops_run = number_in<std::uint32_t>(json, "ops_run");
    if (json.contains("last_op_end_ns"))
      step.last_op_end = number_in<std::int64_t>(json, "last_op_end_ns");
    const auto id = number_in<std::uint32_t>(json, "step");
    if (std::vector<Token> tokens = tokens_from(json); !tokens.empty()) {
      if (WriteResult added = builder.add_tokens(std::move(tokens)); !added) return added;
    }
    std::size_t names = 0;
    for (; next_ && next_->step == id; next_ = next_record()) {
      const AccessRecord& record = *next_;
      if (record.access >= constants_.size())
        return std::unexpected(damaged(folder_ / kRecords, number_,
                                       "The record refers to a missing line of accesses.csv."));
      const ImportedRow& constant = constants_[record.access];
      names += constant.operation_type.size() + constant.device.size() +
               constant.tensor_name.size() + constant.tensor_type.size();
      if (step.rows.size() == kMaxStepRows || names > kMaxNameBytes)
        return std::unexpected(
            damaged(folder_ / kRecords, number_,
                    std::format("A step has more than {} accesses, or {} MiB of names.",
                                kMaxStepRows, kMaxNameBytes >> 20)));
      ImportedRow row = constant;
      row.size_bytes = record.size_bytes;
      row.address = record.tensor_ptr;
      // Experts, heads and matrix rows have their own file range; other records use the range
      // of the access.
      const bool has_own_range =
          record.expert_id >= 0 || record.attention_head >= 0 ||
          (row.extent == Extent::Rows && record.size_bytes == row.unit_bytes);
      if (record.file_offset == UINT64_MAX) {
        row.range = {};
      } else {
        row.range.offset = record.file_offset;
        if (has_own_range) row.range.length = record.size_bytes;
      }
      row.expert = record.expert_id;
      row.rank = record.expert_rank;
      row.head = record.attention_head;
      row.score = record.routing_score;
      row.begin = record.timestamp_ns;
      if (!step.rows.empty() && row.op < step.rows.back().op)
        return std::unexpected(
            damaged(folder_ / kRecords, number_, "The records of a step must be ordered by op."));
      ++imported_.accesses;
      imported_.bytes += row.size_bytes;
      step.rows.push_back(std::move(row));
    }
    ++imported_.steps;
    take_parts(id);
    const auto recorded = recorded_.step(step, id);
    return recorded ? builder.add_step(*recorded) : builder.add_step(step);
  }

  std::filesystem::path folder_, session_;
  std::vector<ImportedRow> constants_;
  std::istream* records_ = nullptr;  // during run()
  std::istream* recording_ = nullptr;
  std::optional<Json> part_;  // the next line of the recording
  RecordedParts recorded_;
  std::uint64_t number_ = 0;
  std::uint32_t version_ = 1;
  std::optional<AccessRecord> next_;
  ImportCounts imported_;
};

}  // namespace

std::expected<ImportCounts, TraceError> import_run_folder(const std::filesystem::path& folder,
                                                          const std::filesystem::path& session,
                                                          const ContinueCheck& keep_going) {
  return FolderImport(folder, session).run(keep_going);
}

}  // namespace tt::exchange
