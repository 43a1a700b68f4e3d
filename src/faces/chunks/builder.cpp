#include "faces/chunks/builder.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/tick_clock.h"
#include "base/units.h"
#include "faces/chunks/range_reader.h"

namespace lmemo::chunks {
namespace {

using std::chrono::milliseconds;

void add(ChunkCounts& sum, const ChunkCounts& counts) {
  sum.rows += counts.rows;
  sum.tokens += counts.tokens;
  sum.tokens_in += counts.tokens_in;
  sum.documents += counts.documents;
  sum.pieces += counts.pieces;
  sum.broken += counts.broken;
  sum.invalid_utf8 += counts.invalid_utf8;
  sum.missing_field += counts.missing_field;
  sum.empty += counts.empty;
  sum.too_short += counts.too_short;
  sum.duplicates += counts.duplicates;
}

uint64_t resident_bytes() {
  unsigned long long total = 0, resident = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu %llu", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

enum class Outcome { built, there, leased };

class Build {
 public:
  Build(const SetPaths& paths, const Plan& plan, const Tokenizer& tokenizer, const BuildOptions& options,
        const Watch& watch)
      : paths_(paths), plan_(plan), tokenizer_(tokenizer), options_(options), watch_(watch) {}

  Result<BuildReport> run(std::vector<uint64_t> numbers) {
    start_ns_ = monotonic_ns();
    LMEMO_TRY(paths_.make());
    registry_ = load_registry(paths_);
    total_chunks_ = numbers.size();
    for (const uint64_t number : numbers) total_bytes_ += plan_.entries[number].bytes();
    LMEMO_ASSIGN(report_.workers, workers_for(numbers));
    pending_ = std::move(numbers);

    while (true) {
      run_workers();
      if (is_stopped_) break;
      if (leased_.empty() || !options_.waits_for_others) break;
      // Others build these. Those they finish are done, those they give up are ours.
      pending_ = std::move(leased_);
      leased_.clear();
      next_ = 0;
      std::this_thread::sleep_for(milliseconds(100));
    }
    [[maybe_unused]] const Status kept =
        keep_registry();  // It is made anew from the chunks where it is missing.
    for (auto& [number, problems] : problems_) report_.problems.add(problems);
    std::sort(report_.failed.begin(), report_.failed.end(),
              [](const FailedChunk& a, const FailedChunk& b) { return a.number < b.number; });
    report_.seconds = static_cast<double>(monotonic_ns() - start_ns_) * 1e-9;
    if (is_stopped_ && fatal_.ok())
      return Error{ErrorCode::interrupted, "interrupted; run it again to go on"};
    LMEMO_TRY(fatal_);
    return std::move(report_);
  }

 private:
  Result<unsigned> workers_for(const std::vector<uint64_t>& numbers) const {
    unsigned workers =
        options_.workers != 0 ? options_.workers : std::max(1u, std::thread::hardware_concurrency());
    workers = static_cast<unsigned>(std::clamp<size_t>(numbers.size(), 1, workers));
    const uint64_t each = memory_of_worker(plan_, numbers);
    if (options_.memory_limit < kBaseMemory + each)
      return Error{ErrorCode::invalid_argument,
                   "--memory-limit " + format_byte_count(options_.memory_limit) +
                       " is too small: the largest chunk needs about " + format_byte_count(each) +
                       " beside " + format_byte_count(kBaseMemory) + " for the program; " +
                       format_byte_count(kBaseMemory + each) +
                       " would do for one worker, or a new set with fewer --chunk-sequences"};
    return static_cast<unsigned>(std::min<uint64_t>(workers, (options_.memory_limit - kBaseMemory) / each));
  }

  void run_workers() {
    std::vector<std::thread> threads;
    for (unsigned worker = 1; worker < report_.workers; ++worker)
      threads.emplace_back([&, worker] { work(worker); });
    work(0);
    for (std::thread& thread : threads) thread.join();
  }

  void work(unsigned worker) {
    RangeReader reader;
    while (!is_stopped_) {
      const size_t at = next_.fetch_add(1);
      if (at >= pending_.size()) return;
      const uint64_t number = pending_[at];
      const auto outcome = build(number, worker, reader);
      const std::lock_guard guard(mutex_);
      if (watch_.stopped()) is_stopped_ = true;
      if (!outcome.ok()) {
        const ErrorCode code = outcome.error().code;
        if (code == ErrorCode::interrupted) {
          is_stopped_ = true;
          return;
        }
        report_.failed.push_back({number, outcome.error()});
        // A full disk stays full for the next chunk.
        if (code == ErrorCode::no_space || options_.is_strict) {
          if (fatal_.ok()) fatal_ = outcome.error();
          is_stopped_ = true;
          return;
        }
      } else if (*outcome == Outcome::leased) {
        leased_.push_back(number);
        continue;
      } else if (*outcome == Outcome::there) {
        ++report_.by_others;
      }
      done_bytes_ += plan_.entries[number].bytes();
      ++done_chunks_;
      tell();
    }
  }

  Result<Outcome> build(uint64_t number, unsigned worker, RangeReader& reader) {
    FileSystem& files = real_file_system();
    const PlanEntry& entry = plan_.entries[number];
    const Digest key = plan_.key_of(entry).digest();
    LMEMO_ASSIGN(bool is_there, is_published(number, key));
    if (is_there) return Outcome::there;
    LMEMO_ASSIGN(const std::unique_ptr<WritableFile> lease, lease_of(number));
    if (!lease) return Outcome::leased;
    // Published between the look and the lease?
    auto again = is_published(number, key);
    if (!again.ok() || *again) {
      LMEMO_TRY(files.remove(paths_.lease(number)));
      if (!again.ok()) return again.error();
      return Outcome::there;
    }
    Status built = build_leased(number, entry, worker, reader);
    LMEMO_TRY(files.remove(paths_.lease(number)));
    if (!built.ok()) return built.error();
    return Outcome::built;
  }

  Result<bool> is_published(uint64_t number, const Digest& key) {
    const Path path = paths_.chunk(number);
    LMEMO_ASSIGN(const FileStatus status, real_file_system().status(path));
    if (status.type != FileType::regular) return false;
    {
      const std::lock_guard guard(mutex_);
      const auto known = registry_.find(number);
      if (known != registry_.end() && known->second.describes(status.byte_count, status.modified_ns))
        return known->second.key == key;
    }
    const auto file = ChunkFile::open(path);
    return file.ok() && (*file)->number() == number && (*file)->plan_entry() == key;
  }

  // Null if somebody alive has it.
  Result<std::unique_ptr<WritableFile>> lease_of(uint64_t number) {
    FileSystem& files = real_file_system();
    const Path path = paths_.lease(number);
    auto mine = files.create(path);
    if (mine.ok()) return mine;
    auto left = files.take_over(path);
    if (left.ok() && *left) return left;  // Its builder died.
    if (left.ok() || left.error().code == ErrorCode::busy) return std::unique_ptr<WritableFile>();
    return left;
  }

  Status build_leased(uint64_t number, const PlanEntry& entry, unsigned worker, RangeReader& reader) {
    FileSystem& files = real_file_system();
    LMEMO_ASSIGN(ChunkTokens tokens, tokens_of(plan_, entry, tokenizer_, options_.is_strict, reader));
    ChunkContent content;
    content.number = number;
    content.ranges = entry.contents();
    content.left_out = tokens.left_out;
    content.tokens = tokens.tokens;
    content.offsets = tokens.offsets;
    const Path temporary = paths_.writing() / (std::to_string(number) + "-" + std::to_string(::getpid()) +
                                               "-" + std::to_string(worker) + ".part");
    LMEMO_TRY(files.remove(temporary));
    LMEMO_ASSIGN(const WrittenChunk written, write_chunk(files, temporary, plan_.parameters, content));
    LMEMO_TRY(files.rename(temporary, paths_.chunk(number)));
    LMEMO_TRY(files.sync_directory(paths_.chunks()));
    LMEMO_ASSIGN(const FileStatus status, files.status(paths_.chunk(number)));

    const std::lock_guard guard(mutex_);
    fresh_[number] = {number,         written.bytes,          status.modified_ns,
                      written.counts, written.blocks,         rows_per_block(plan_.parameters),
                      written.sha256, written.content_sha256, written.key};
    ++report_.built;
    report_.source_bytes += entry.bytes();
    report_.written_bytes += written.bytes;
    add(report_.counts, written.counts);
    if (tokens.problems.total() > 0) problems_[number] = std::move(tokens.problems);
    // Every few seconds, so that others see what is there without opening it.
    if (const int64_t now = monotonic_ns(); now - kept_ns_ > 2'000'000'000) {
      kept_ns_ = now;
      [[maybe_unused]] const Status kept = keep_registry();
    }
    return {};
  }

  Status keep_registry() {
    if (fresh_.empty()) return {};
    return update_registry(paths_, fresh_);
  }

  // Requires: mutex_ is held.
  void tell() {
    const double seconds = static_cast<double>(monotonic_ns() - start_ns_) * 1e-9;
    const ChunkCounts& counts = report_.counts;
    std::string note = format_count(done_chunks_) + "/" + format_count(total_chunks_) + " chunks, " +
                       format_count(counts.documents) + " documents";
    if (seconds > 0)
      note +=
          ", " + format_byte_count(static_cast<uint64_t>(static_cast<double>(done_bytes_) / seconds)) + "/s";
    if (done_bytes_ > 0 && done_bytes_ < total_bytes_)
      note += ", " +
              format_seconds(seconds * static_cast<double>(total_bytes_ - done_bytes_) /
                             static_cast<double>(done_bytes_)) +
              " left";
    if (counts.rows > 0)
      note += ", " +
              format_fixed(100.0 * static_cast<double>(counts.tokens) /
                               (static_cast<double>(counts.rows) * plan_.parameters.sequence_length),
                           2) +
              " % filled, " +
              format_fixed(static_cast<double>(report_.written_bytes) /
                               static_cast<double>(std::max<uint64_t>(1, counts.tokens)),
                           2) +
              " bytes/token";
    note +=
        ", memory " + format_byte_count(resident_bytes()) + " of " + format_byte_count(options_.memory_limit);
    watch_.report({"build", done_bytes_, total_bytes_, "bytes", note});
  }

  const SetPaths& paths_;
  const Plan& plan_;
  const Tokenizer& tokenizer_;
  const BuildOptions& options_;
  const Watch& watch_;
  std::vector<uint64_t> pending_;  // Constant while workers run.
  uint64_t total_chunks_ = 0, total_bytes_ = 0;
  int64_t start_ns_ = 0;
  std::atomic<size_t> next_{0};
  std::atomic<bool> is_stopped_{false};

  std::mutex mutex_;  // Guards everything below, and the watch.
  Registry registry_, fresh_;
  BuildReport report_;
  std::map<uint64_t, LineProblems> problems_;
  std::vector<uint64_t> leased_;
  Status fatal_;
  uint64_t done_chunks_ = 0, done_bytes_ = 0;
  int64_t kept_ns_ = 0;
};

}  // namespace

// The bytes of a chunk's largest range, its tokens (at the worst one a byte would be 4 times as much as is planned for:
// the plan's own ratio decides) twice while they grow, its rows and the buffers of the compressor.
uint64_t memory_of_worker(const Plan& plan, std::span<const uint64_t> numbers) {
  uint64_t largest = 0;
  for (const uint64_t number : numbers) largest = std::max(largest, plan.entries[number].bytes());
  return 4 * largest + (uint64_t{32} << 20);
}

Result<BuildReport> build_chunks(const SetPaths& paths, const Plan& plan, const Tokenizer& tokenizer,
                                 std::vector<uint64_t> numbers, const BuildOptions& options,
                                 const Watch& watch) {
  return Build(paths, plan, tokenizer, options, watch).run(std::move(numbers));
}

}  // namespace lmemo::chunks
