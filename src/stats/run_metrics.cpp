#include "stats/run_metrics.h"

#include <sqlite3.h>

#include <array>
#include <memory>
#include <random>

namespace lmemo {
namespace {

constexpr int kBusyMilliseconds = 2000;
constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS runs ("
    " run_id TEXT PRIMARY KEY, face TEXT NOT NULL, started_at TEXT NOT NULL, started_at_ns INTEGER NOT NULL,"
    " source TEXT NOT NULL, tokenizer TEXT NOT NULL, total_sections INTEGER NOT NULL, cache_hits INTEGER NOT "
    "NULL,"
    " cache_misses INTEGER NOT NULL, total_tokenize_seconds REAL NOT NULL, wall_seconds REAL NOT NULL,"
    " cache_bytes_after INTEGER NOT NULL, total_tokens INTEGER NOT NULL, tokenized_tokens INTEGER NOT NULL,"
    " miss_reasons TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS runs_by_time ON runs (started_at_ns);";

using Database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;
using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

Error database_error(const std::filesystem::path& file, sqlite3* database, int code) {
  const std::string message = database ? sqlite3_errmsg(database) : sqlite3_errstr(code);
  const bool is_damaged = code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
  return {is_damaged ? ErrorCode::corruption : ErrorCode::io_error,
          "metrics " + file.string() + ": " + message + "; it holds history only and may be removed"};
}

Result<Database> open(const std::filesystem::path& file, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(raw, &sqlite3_close);
  if (code != SQLITE_OK) return database_error(file, raw, code);
  sqlite3_busy_timeout(raw, kBusyMilliseconds);
  return database;
}

Result<Statement> prepare(const std::filesystem::path& file, sqlite3* database, const std::string& text) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(database, text.c_str(), static_cast<int>(text.size()), &raw, nullptr);
  if (code != SQLITE_OK) return database_error(file, database, code);
  return Statement(raw, &sqlite3_finalize);
}

void bind(sqlite3_stmt* statement, int& place, const std::string& text) {
  sqlite3_bind_text(statement, ++place, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}
void bind(sqlite3_stmt* statement, int& place, uint64_t number) {
  sqlite3_bind_int64(statement, ++place, static_cast<int64_t>(number));
}
void bind(sqlite3_stmt* statement, int& place, int64_t number) {
  sqlite3_bind_int64(statement, ++place, number);
}
void bind(sqlite3_stmt* statement, int& place, double number) {
  sqlite3_bind_double(statement, ++place, number);
}

std::string text_at(sqlite3_stmt* statement, int column) {
  const auto* text = sqlite3_column_text(statement, column);
  return text ? std::string(reinterpret_cast<const char*>(text),
                            static_cast<size_t>(sqlite3_column_bytes(statement, column)))
              : "";
}
uint64_t count_at(sqlite3_stmt* statement, int column) {
  return static_cast<uint64_t>(sqlite3_column_int64(statement, column));
}

// "new=3 edited=1": plain to read in a query, and needs no parser of its own.
std::string text_of(const std::map<std::string, uint64_t>& reasons) {
  std::string text;
  for (const auto& [name, count] : reasons)
    if (count > 0) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(count);
  return text;
}

std::map<std::string, uint64_t> reasons_of(const std::string& text) {
  std::map<std::string, uint64_t> reasons;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (const size_t equals = text.find('=', at); equals < end)
      reasons[text.substr(at, equals - at)] = std::strtoull(text.c_str() + equals + 1, nullptr, 10);
    at = end + 1;
  }
  return reasons;
}

Status try_to_record(const std::filesystem::path& file, const RunRecord& run) {
  LMEMO_ASSIGN(const Database database, open(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  // History may lose its last row to a power cut: no sync for each run.
  sqlite3_exec(database.get(), "PRAGMA synchronous=OFF", nullptr, nullptr, nullptr);
  if (const int code = sqlite3_exec(database.get(), kSchema, nullptr, nullptr, nullptr); code != SQLITE_OK)
    return database_error(file, database.get(), code);
  LMEMO_ASSIGN(const Statement insert,
               prepare(file, database.get(),
                       "INSERT OR REPLACE INTO runs VALUES (?1, ?2, strftime('%Y-%m-%dT%H:%M:%SZ', ?3 / "
                       "1000000000, 'unixepoch'), ?3,"
                       " ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"));
  int place = 0;
  bind(insert.get(), place, run.run_id);
  bind(insert.get(), place, run.face);
  bind(insert.get(), place, run.started_at_ns);
  bind(insert.get(), place, run.source);
  bind(insert.get(), place, run.tokenizer);
  bind(insert.get(), place, run.total_sections);
  bind(insert.get(), place, run.cache_hits);
  bind(insert.get(), place, run.cache_misses);
  bind(insert.get(), place, run.total_tokenize_seconds);
  bind(insert.get(), place, run.wall_seconds);
  bind(insert.get(), place, run.cache_bytes_after);
  bind(insert.get(), place, run.total_tokens);
  bind(insert.get(), place, run.tokenized_tokens);
  bind(insert.get(), place, text_of(run.miss_reasons));
  if (const int code = sqlite3_step(insert.get()); code != SQLITE_DONE)
    return database_error(file, database.get(), code);
  return {};
}

}  // namespace

std::string new_run_id(int64_t now_ns) {
  constexpr std::string_view kLetters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  std::string id(26, '0');
  uint64_t milliseconds = static_cast<uint64_t>(now_ns) / 1'000'000;
  for (size_t at = 10; at-- > 0; milliseconds >>= 5) id[at] = kLetters[milliseconds & 31];
  std::random_device random;
  for (size_t at = 10; at < id.size(); ++at) id[at] = kLetters[random() & 31];
  return id;
}

Status record_run(const std::filesystem::path& file, const RunRecord& run) {
  Status status = try_to_record(file, run);
  if (status.ok() || status.error().code != ErrorCode::corruption) return status;
  // No longer a database: set it aside and begin a new history.
  std::error_code error;
  std::filesystem::rename(file, file.string() + ".damaged", error);
  return error ? status : try_to_record(file, run);
}

Result<std::vector<RunRecord>> read_runs(const std::filesystem::path& file, const RunFilter& filter) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::vector<RunRecord>();
  LMEMO_ASSIGN(const Database database, open(file, SQLITE_OPEN_READONLY));
  LMEMO_ASSIGN(
      const Statement select,
      prepare(
          file, database.get(),
          "SELECT run_id, face, started_at_ns, source, tokenizer, total_sections, cache_hits, cache_misses,"
          " total_tokenize_seconds, wall_seconds, cache_bytes_after, total_tokens, tokenized_tokens, "
          "miss_reasons FROM runs"
          " WHERE started_at_ns >= ?1 AND (?2 = '' OR face = ?2) AND (?3 = '' OR source = ?3)"
          " AND (?4 = '' OR tokenizer = ?4) ORDER BY started_at_ns DESC, run_id DESC LIMIT ?5"));
  int place = 0;
  bind(select.get(), place, filter.since_ns);
  bind(select.get(), place, filter.face);
  bind(select.get(), place, filter.source);
  bind(select.get(), place, filter.tokenizer);
  bind(select.get(), place, filter.limit == 0 ? int64_t{-1} : static_cast<int64_t>(filter.limit));
  std::vector<RunRecord> runs;
  int code;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
    sqlite3_stmt* row = select.get();
    runs.push_back({text_at(row, 0), text_at(row, 1), sqlite3_column_int64(row, 2), text_at(row, 3),
                    text_at(row, 4), count_at(row, 5), count_at(row, 6), count_at(row, 7),
                    sqlite3_column_double(row, 8), sqlite3_column_double(row, 9), count_at(row, 10),
                    count_at(row, 11), count_at(row, 12), reasons_of(text_at(row, 13))});
  }
  if (code != SQLITE_DONE) return database_error(file, database.get(), code);
  return runs;
}

double seconds_per_token(const std::filesystem::path& file, const std::string& tokenizer) {
  const auto runs = read_runs(file, {.tokenizer = tokenizer, .limit = 100});
  if (!runs.ok()) return 0;
  double seconds = 0, tokens = 0;
  for (const RunRecord& run : *runs)
    seconds += run.total_tokenize_seconds, tokens += static_cast<double>(run.tokenized_tokens);
  return tokens > 0 ? seconds / tokens : 0;
}

}  // namespace lmemo
