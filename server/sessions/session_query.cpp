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
struct Row {
  SessionEntryPtr session;
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

std::string title_of(const SessionEntry& session) {
  return session.overview ? session.overview->info.title : std::string();
}

bool matches(const SessionEntry& session, const SessionQuery& query,
             const std::vector<std::string>& words) {
  if (!query.state.empty() && state_of(session) != query.state) return false;
  if (!query.model.empty() && model_of(session) != query.model) return false;
  if (words.empty()) return true;
  const std::string text =
      fold_case(title_of(session) + '\n' + model_of(session) + '\n' + session.id);
  return std::ranges::all_of(words, [&](const std::string& word) { return text.contains(word); });
}

Row row_of(SessionEntryPtr session, SessionKey key) {
  Row row;
  const auto& overview = session->overview;
  switch (key) {
    case SessionKey::Start:
      // Times before 1970 do not occur, but a damaged file may contain one.
      row.number =
          overview
              ? static_cast<std::uint64_t>(std::max<std::int64_t>(overview->info.start_utc_ns, 0))
              : 0;
      break;
    case SessionKey::Title:
      row.text = fold_case(title_of(*session));
      break;
    case SessionKey::Model:
      row.text = fold_case(model_of(*session));
      break;
    case SessionKey::Steps:
      row.number = overview ? overview->steps : 0;
      break;
    case SessionKey::Tokens:
      row.number = overview ? overview->tokens : 0;
      break;
    case SessionKey::FileBytes:
      row.number = session->file_bytes;
      break;
  }
  row.session = std::move(session);
  return row;
}

}  // namespace

std::string state_of(const SessionEntry& session) {
  return session.overview ? to_text(session.overview->info.state) : "unreadable";
}

std::string model_of(const SessionEntry& session) {
  if (!session.overview || session.overview->info.model_files.empty()) return {};
  return std::filesystem::path(session.overview->info.model_files.front().path).filename().string();
}

Page<SessionEntryPtr> select_sessions(std::vector<SessionEntryPtr> sessions,
                                      const SessionQuery& query) {
  const std::vector<std::string> words = words_of(query.words);
  std::vector<Row> rows;
  for (SessionEntryPtr& session : sessions)
    if (matches(*session, query, words)) rows.push_back(row_of(std::move(session), query.key));
  // Descending order is the exact reverse of ascending order.
  std::ranges::sort(rows, [&](const Row& a, const Row& b) {
    const auto order =
        std::tie(a.number, a.text, a.session->id) <=> std::tie(b.number, b.text, b.session->id);
    return query.descending ? std::is_gt(order) : std::is_lt(order);
  });
  Page<SessionEntryPtr> page{.total = rows.size(), .rows = {}};
  for (std::uint64_t i = query.page.from; i < rows.size() && query.page.contains(i); ++i)
    page.rows.push_back(std::move(rows[i].session));
  return page;
}

}  // namespace tt
