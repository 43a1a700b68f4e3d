#include "cli/report/gather_report.h"

#include <algorithm>
#include <map>

#include "base/units.h"
#include "cli/report/html_text.h"
#include "cli/shell_word.h"
#include "lmemo/activations.h"

namespace lmemo::cli {
namespace {

constexpr size_t kMostShares = 12;
constexpr size_t kMostPresenceMaps = 6;
constexpr size_t kMostPresenceRows = 48;
constexpr double kNearlyFull = 0.95;

struct Sum {
  uint64_t entries = 0, bytes = 0;
  void add(uint64_t more_bytes) {
    ++entries;
    bytes += more_bytes;
  }
};

// Digests are long, and told apart by their beginning; one that is stored as bytes looks like one that is stored as text.
std::string short_name(const FieldValue& value) {
  const auto* text = std::get_if<std::string>(&value.variant());
  std::string name = text ? *text : value.describe();
  if (!text && name.starts_with("0x")) name.erase(0, 2);
  const bool is_digest = name.size() >= 32 && name.find_first_not_of("0123456789abcdef") == name.npos;
  return shortened(name, is_digest ? 12 : 64);
}

std::vector<ReportShare> largest_first(const std::map<std::string, Sum>& sums) {
  std::vector<ReportShare> shares;
  for (const auto& [name, sum] : sums)
    shares.push_back(
        {name, name + " · " + format_count(sum.entries) + " entries · " + format_count(sum.bytes) + " bytes",
         sum.entries, sum.bytes});
  std::sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
  if (shares.size() <= kMostShares) return shares;
  ReportShare others{"others", "", 0, 0};
  for (size_t i = kMostShares - 1; i < shares.size(); ++i) {
    others.entries += shares[i].entries;
    others.bytes += shares[i].bytes;
  }
  others.detail = format_count(shares.size() - kMostShares + 1) + " others · " +
                  format_count(others.entries) + " entries";
  shares.resize(kMostShares - 1);
  shares.push_back(others);
  return shares;
}

// A model's prompts in at most so many stretches, and the share of each that has each layer.
ReportPresence presence_of(const ActivationModel& model, const std::vector<int64_t>& layers,
                           const std::vector<std::vector<bool>>& coverage) {
  ReportPresence presence{shortened(model.name, 64) + " (" + model.hash + ")", coverage.size(), layers, {}};
  const size_t prompts_per_row = (coverage.size() + kMostPresenceRows - 1) / kMostPresenceRows;
  for (size_t first = 0; first < coverage.size(); first += prompts_per_row) {
    const size_t end = std::min(first + prompts_per_row, coverage.size());
    ReportPresence::Row row{first, end - 1, std::vector<double>(layers.size(), 0.0)};
    for (size_t prompt = first; prompt < end; ++prompt)
      for (size_t layer = 0; layer < layers.size(); ++layer)
        if (coverage[prompt][layer]) row.shares[layer] += 1.0 / static_cast<double>(end - first);
    presence.rows.push_back(std::move(row));
  }
  return presence;
}

uint64_t chunks_in(const ReportData& report, uint64_t ReportChunks::* count) {
  uint64_t sum = 0;
  for (const ReportChunks& chunks : report.chunk_sets) sum += chunks.*count;
  return sum;
}

// The directory of the first set that has any.
std::string where(const ReportData& report, uint64_t ReportChunks::* count) {
  for (const ReportChunks& chunks : report.chunk_sets)
    if (chunks.*count) return chunks.directory;
  return "";
}

}  // namespace

Status gather_sizes(Store& store, ReportData& report, const Watch& watch) {
  const StoreStats stats = store.stats();
  report.has_store = true;
  report.entries = stats.entries;
  report.live_bytes = stats.live_bytes;
  report.disk_bytes = stats.disk_bytes;
  report.max_bytes = stats.max_bytes;
  std::map<std::string, Sum> kinds, models, tokenizers;
  for (const auto& [name, kind] : stats.kinds) kinds[name] = {kind.entries, kind.stored_bytes};

  bool was_stopped = false;
  LMEMO_TRY(store.scan({}, [&](const EntryInfo& info) {
    const Result<Key> key = info.key();
    if (key.ok())
      for (const Field& field : key->fields()) {
        if (field.name == "model") models[short_name(field.value)].add(info.stored_bytes);
        if (field.name == "tokenizer") tokenizers[short_name(field.value)].add(info.stored_bytes);
      }
    was_stopped = watch.stopped();
    return !was_stopped;
  }));
  if (was_stopped) return Error{ErrorCode::interrupted, "while reading the store"};
  report.kinds = largest_first(kinds);
  report.models = largest_first(models);
  report.tokenizers = largest_first(tokenizers);
  return {};
}

Status gather_presence(Store& store, ReportData& report) {
  ActivationCatalog catalog(store);
  LMEMO_ASSIGN(std::vector<ActivationModel> models, catalog.models());
  std::erase_if(models, [](const ActivationModel& model) { return model.raw_layers.empty(); });
  std::sort(models.begin(), models.end(),
            [](const auto& a, const auto& b) { return a.stored_bytes > b.stored_bytes; });
  for (size_t i = 0; i < std::min(models.size(), kMostPresenceMaps); ++i) {
    std::vector<int64_t> layers;
    for (const auto& [layer, prompts] : models[i].raw_layers) layers.push_back(layer);
    LMEMO_ASSIGN(const auto coverage, catalog.coverage(models[i].encoding, layers));
    report.presence.push_back(presence_of(models[i], layers, coverage));
  }
  return {};
}

void judge(ReportData& report) {
  const auto attention = [&](std::string sentence, std::string command) {
    report.needs_attention = true;
    report.sentence = std::move(sentence);
    report.command = std::move(command);
  };
  if (report.is_damaged)
    return attention("The store is damaged; what is sound in it is served. Drop the rest:",
                     "lmemo repair" + report.store_words);
  if (report.is_unreadable)
    return attention("Files of the store cannot be read; what is in them is missing here. See which:",
                     "lmemo verify" + report.store_words);
  if (const uint64_t damaged = chunks_in(report, &ReportChunks::damaged))
    return attention(format_count(damaged) + (damaged == 1 ? " chunk is damaged" : " chunks are damaged") +
                         "; rebuild from the sources:",
                     "lmemo chunks repair " + shell_word(where(report, &ReportChunks::damaged)));
  if (const uint64_t stale = chunks_in(report, &ReportChunks::stale))
    return attention(
        format_count(stale) + (stale == 1 ? " chunk is" : " chunks are") + " older than the sources:",
        "lmemo chunks repair " + shell_word(where(report, &ReportChunks::stale)));
  if (const uint64_t missing = chunks_in(report, &ReportChunks::missing))
    return attention(format_count(missing) + (missing == 1 ? " chunk is missing:" : " chunks are missing:"),
                     "lmemo chunks fill " + shell_word(where(report, &ReportChunks::missing)));
  if (report.max_bytes &&
      static_cast<double>(report.disk_bytes) > kNearlyFull * static_cast<double>(report.max_bytes))
    return attention(
        "The store is full: the least recently used entries make room for new ones. Raise max_bytes, or drop "
        "what is old:",
        "lmemo prune --older-than 30d" + report.store_words);
  report.needs_attention = false;
  report.sentence = report.has_store ? "Nothing needs attention." : "Nothing is stored yet.";
}

}  // namespace lmemo::cli
