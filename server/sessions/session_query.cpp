#include "server/sessions/session_query.h"

#include <algorithm>
#include <compare>
#include <filesystem>
#include <string_view>
#include <tuple>
#include <utility>

#include "server/sessions/fold_case.h"

namespace tt {

namespace {

// Sort key of a session, computed once per session.
struct SortRow {
  SessionRowPtr session;
  std::uint64_t number = 0;  // for numeric sort keys
  std::string text;          // for text sort keys
};

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  const std::string folded = fold_case(text);
  for (std::size_t at = 0; (at = folded.find_first_not_of(" \t\r\n", at)) != std::string::npos;) {
    const std::size_t end = std::min(folded.find_first_of(" \t\r\n", at), folded.size());
    words.push_back(folded.substr(at, end - at));
    at = end;
  }
  return words;
}

bool matches(const SessionRow& session, const SessionQuery& query,
             const std::vector<std::string>& words) {
  if (!query.state.empty() && session.state != query.state) return false;
  if (!query.model.empty() && session.model != query.model) return false;
  if (words.empty()) return true;
  const std::string text = fold_case(session.title + '\n' + session.model + '\n' + session.id);
  return std::ranges::all_of(words, [&](const std::string& word) { return text.contains(word); });
}

SortRow sort_row(SessionRowPtr session, SessionKey key) {
  SortRow row;
  switch (key) {
    case SessionKey::Start:
      // Times before 1970 do not occur, but a damaged file may contain one.
      row.number = static_cast<std::uint64_t>(std::max<std::int64_t>(session->start_utc_ns, 0));
      break;
    case SessionKey::Title:
      row.text = fold_case(session->title);
      break;
    case SessionKey::Model:
      row.text = fold_case(session->model);
      break;
    case SessionKey::Steps:
      row.number = session->steps;
      break;
    case SessionKey::Tokens:
      row.number = session->tokens;
      break;
    case SessionKey::FileBytes:
      row.number = session->file_bytes;
      break;
  }
  row.session = std::move(session);
  return row;
}

}  // namespace

SessionRow row_of(const SessionEntry& session) {
  SessionRow row{.id = session.id,
                 .title = {},
                 .model = {},
                 .state = "unreadable",
                 .file_bytes = session.file_bytes};
  if (!session.overview) return row;
  const SessionInfo& info = session.overview->info;
  row.title = info.title.substr(0, SessionRow::kMaxText);
  if (!info.model_files.empty()) {
    const std::filesystem::path model(info.model_files.front().path);
    row.model = model.filename().string().substr(0, SessionRow::kMaxText);
  }
  row.state = to_text(info.state);
  row.start_utc_ns = info.start_utc_ns;
  row.steps = session.overview->steps;
  row.tokens = session.overview->tokens;
  return row;
}

Page<SessionRowPtr> select_sessions(std::vector<SessionRowPtr> sessions,
                                    const SessionQuery& query) {
  const std::vector<std::string> words = words_of(query.words);
  std::vector<SortRow> rows;
  for (SessionRowPtr& session : sessions)
    if (matches(*session, query, words)) rows.push_back(sort_row(std::move(session), query.key));
  // Descending order is the exact reverse of ascending order.
  std::ranges::sort(rows, [&](const SortRow& a, const SortRow& b) {
    const auto order =
        std::tie(a.number, a.text, a.session->id) <=> std::tie(b.number, b.text, b.session->id);
    return query.descending ? std::is_gt(order) : std::is_lt(order);
  });
  Page<SessionRowPtr> page{.total = rows.size(), .rows = {}};
  for (std::uint64_t i = query.page.from; i < rows.size() && query.page.contains(i); ++i)
    page.rows.push_back(std::move(rows[i].session));
  return page;
}

}  // namespace tt
