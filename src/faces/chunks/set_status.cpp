#include "faces/chunks/set_status.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/claim_file.h"

namespace lmemo::chunks {
namespace {

// Every source's ranges cover it from its start without gap or overlap, so every document is in exactly one chunk.
std::vector<std::string> coverage_problems_of(const Plan& plan) {
  std::map<uint32_t, std::vector<std::pair<uint64_t, uint64_t>>> ranges;
  for (const PlanEntry& entry : plan.entries)
    for (const PlanRange& range : entry.ranges)
      if (range.end > range.begin) ranges[range.source].emplace_back(range.begin, range.end);
  std::vector<std::string> problems;
  for (auto& [source, parts] : ranges) {
    std::sort(parts.begin(), parts.end());
    const std::string name = plan.sources.at(source).path.string();
    for (size_t at = 1; at < parts.size(); ++at)
      if (parts[at].first < parts[at - 1].second)
        problems.push_back(name + ": bytes " + std::to_string(parts[at].first) + " to " +
                           std::to_string(parts[at - 1].second) + " are in two chunks");
  }
  return problems;
}

class Looking {
 public:
  Looking(const SetPaths& paths, const Plan& plan, const StatusOptions& options, const Watch& watch)
      : paths_(paths), plan_(plan), options_(options), watch_(watch) {}

  Result<SetStatus> run() {
    known_ = load_registry(paths_);
    LMEMO_ASSIGN(found_, list_chunks(paths_));
    status_.states.assign(plan_.entries.size(), ChunkState::missing);
    for (const FoundChunk& found : found_) {
      if (found.number >= plan_.entries.size()) {
        status_.foreign.push_back(found.number);
      } else if (needs_reading(found)) {
        to_read_.push_back(found);
        bytes_to_read_ += found.bytes;
      } else {
        note(known_.at(found.number));
      }
    }
    LMEMO_TRY(read_files());
    std::sort(status_.damaged.begin(), status_.damaged.end(),
              [](const DamagedChunk& a, const DamagedChunk& b) { return a.number < b.number; });
    status_.coverage_problems = coverage_problems_of(plan_);
    if (!status_.foreign.empty())
      status_.coverage_problems.push_back(
          std::to_string(status_.foreign.size()) + " chunks from " + std::to_string(status_.foreign.front()) +
          " on are there, but not in the plan: a part of it is lost; `lmemo chunks grow " +
          paths_.directory.string() + " INPUT…` with the inputs that were added last plans them again");
    find_claims();
    if (options_.compares_sources) {
      LMEMO_ASSIGN(status_.sources, reconcile(plan_, watch_));
      for (const uint64_t number : status_.sources.stale)
        if (status_.states[number] == ChunkState::sound) status_.states[number] = ChunkState::stale;
    }
    return std::move(status_);
  }

 private:
  bool needs_reading(const FoundChunk& found) {
    const auto known = known_.find(found.number);
    if (known == known_.end() || !known->second.describes(found.bytes, found.modified_ns)) return true;
    if (options_.check != Check::all) return false;
    // Spread evenly: the first chunk of every 1 / sample.
    if (options_.sample >= 1) return true;
    const double position = static_cast<double>(found.number) * options_.sample;
    return found.number == 0 ||
           static_cast<uint64_t>(position) != static_cast<uint64_t>(position - options_.sample);
  }

  void note(const RegistryEntry& entry) {
    status_.registry[entry.number] = entry;
    const PlanEntry& planned = plan_.entries[entry.number];
    const bool is_planned = entry.key == plan_.key_of(planned).digest();
    status_.states[entry.number] = is_planned ? ChunkState::sound : ChunkState::stale;
    const uint64_t documents = entry.counts.documents + entry.counts.left_out();
    if (is_planned && documents != planned.documents())
      note_damage(entry.number, "it accounts for " + std::to_string(documents) + " documents, the plan has " +
                                    std::to_string(planned.documents()));
  }

  void note_damage(uint64_t number, const std::string& what) {
    status_.states[number] = ChunkState::damaged;
    status_.registry.erase(number);
    status_.damaged.push_back({number, what});
  }

  Status read_files() {
    std::atomic<size_t> next{0};
    std::atomic<bool> is_stopped{false};
    std::mutex mutex;
    const auto work = [&] {
      while (!is_stopped) {
        const size_t at = next++;
        if (at >= to_read_.size()) return;
        const auto entry = read(to_read_[at]);
        const std::lock_guard guard(mutex);
        if (entry.ok())
          note(*entry);
        else
          note_damage(to_read_[at].number, entry.error().message);
        ++status_.checked;
        status_.checked_bytes += to_read_[at].bytes;
        watch_.report({"verify", status_.checked_bytes, bytes_to_read_, "bytes"});
        if (watch_.stopped()) is_stopped = true;
      }
    };
    std::vector<std::thread> threads;
    for (unsigned worker = 1; worker < options_.workers; ++worker) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (is_stopped) return Error{ErrorCode::interrupted, "interrupted"};
    return {};
  }

  Result<RegistryEntry> read(const FoundChunk& found) const {
    LMEMO_ASSIGN(RegistryEntry entry, describe_chunk(paths_, found));
    LMEMO_ASSIGN(const auto file, ChunkFile::open(paths_.chunk(found.number)));
    LMEMO_ASSIGN(entry.sha256, file->verify());
    const auto known = known_.find(found.number);
    // A chunk that was built again from other sources has another key.
    if (known != known_.end() && known->second.key == entry.key && known->second.sha256 != Digest() &&
        known->second.sha256 != entry.sha256)
      return Error{ErrorCode::corruption,
                   "SHA-256 " + entry.sha256.hex() + ", the registry has " + known->second.sha256.hex()};
    return entry;
  }

  // A claim is tried and given back: a builder that comes across it in this moment tries again.
  void find_claims() {
    std::error_code ignored;
    if (!std::filesystem::exists(paths_.claims(), ignored)) return;
    auto claims = ClaimFile::open(paths_.claims());
    if (!claims.ok()) return;  // A directory that cannot be written to: nobody builds there.
    for (uint64_t number = 0; number < status_.states.size(); ++number) {
      if (status_.states[number] == ChunkState::sound) continue;
      if (claims->try_claim(number))
        claims->release(number);
      else
        status_.claimed.push_back(number);
    }
  }

  const SetPaths& paths_;
  const Plan& plan_;
  const StatusOptions& options_;
  const Watch& watch_;
  Registry known_;
  std::vector<FoundChunk> found_, to_read_;
  uint64_t bytes_to_read_ = 0;
  SetStatus status_;
};

}  // namespace

std::string_view name_of(ChunkState state) {
  switch (state) {
    case ChunkState::sound: return "sound";
    case ChunkState::missing: return "missing";
    case ChunkState::damaged: return "damaged";
    case ChunkState::stale: return "stale";
  }
  return "unknown";
}

std::vector<uint64_t> SetStatus::with(ChunkState state) const {
  std::vector<uint64_t> numbers;
  for (uint64_t number = 0; number < states.size(); ++number)
    if (states[number] == state) numbers.push_back(number);
  return numbers;
}

bool SetStatus::is_complete() const {
  return foreign.empty() && std::all_of(states.begin(), states.end(),
                                        [](ChunkState state) { return state == ChunkState::sound; });
}

ChunkCounts SetStatus::counts() const {
  ChunkCounts sum;
  for (const auto& [number, entry] : registry) {
    if (states[number] != ChunkState::sound) continue;
    sum.rows += entry.counts.rows;
    sum.tokens += entry.counts.tokens;
    sum.tokens_in += entry.counts.tokens_in;
    sum.documents += entry.counts.documents;
    sum.pieces += entry.counts.pieces;
    sum.broken += entry.counts.broken;
    sum.invalid_utf8 += entry.counts.invalid_utf8;
    sum.missing_field += entry.counts.missing_field;
    sum.empty += entry.counts.empty;
    sum.too_short += entry.counts.too_short;
    sum.duplicates += entry.counts.duplicates;
  }
  return sum;
}

uint64_t SetStatus::bytes() const {
  uint64_t sum = 0;
  for (const auto& [number, entry] : registry) sum += states[number] == ChunkState::sound ? entry.bytes : 0;
  return sum;
}

Result<SetStatus> status_of(const SetPaths& paths, const Plan& plan, const StatusOptions& options,
                            const Watch& watch) {
  return Looking(paths, plan, options, watch).run();
}

Result<std::vector<Leftover>> find_leftovers(const SetPaths& paths) {
  FileSystem& files = real_file_system();
  std::vector<Leftover> leftovers;
  for (const Path& directory : {paths.writing(), paths.aside()}) {
    LMEMO_ASSIGN(const FileStatus there, files.status(directory));
    if (there.type != FileType::directory) continue;
    LMEMO_ASSIGN(std::vector<std::string> names, files.list(directory));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      LMEMO_ASSIGN(const FileStatus status, files.status(directory / name));
      if (status.type != FileType::regular) continue;
      if (directory != paths.aside()) {
        const auto taken = files.take_over(directory / name);
        if (!taken.ok() || !*taken) continue;  // Alive, or just gone.
      }
      leftovers.push_back({directory / name, status.byte_count});
    }
  }
  return leftovers;
}

Result<bool> remove_leftover(const Leftover& leftover) {
  FileSystem& files = real_file_system();
  const auto taken = files.take_over(leftover.path);
  if (!taken.ok() && taken.error().code == ErrorCode::busy) return false;
  if (!taken.ok()) return taken.error();
  LMEMO_TRY(files.remove(leftover.path));
  return true;
}

}  // namespace lmemo::chunks
