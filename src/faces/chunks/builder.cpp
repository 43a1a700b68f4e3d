#include "faces/chunks/builder.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/claim_file.h"
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

enum class Outcome { built, there, claimed };

class Build {
 public:
  Build(const SetPaths& paths, const Plan& plan, const Tokenizer& tokenizer, const BuildOptions& options,
        const Watch& watch)
      : paths_(paths), plan_(plan), tokenizer_(tokenizer), options_(options), watch_(watch) {}

  Result<BuildReport> run(std::vector<uint64_t> numbers) {
    start_ns_ = monotonic_ns();
    if (numbers.empty()) return std::move(report_);  // Also where nothing may be written.
    LMEMO_TRY(paths_.make());
    registry_ = load_registry(paths_);
    LMEMO_ASSIGN(report_.workers, workers_for(numbers));
    LMEMO_ASSIGN(ClaimFile claims, ClaimFile::open(paths_.claims()));
    claims_ = &claims;
    BuildTotals totals{.chunks = numbers.size(),
                       .sequence_length = plan_.parameters.sequence_length,
                       .vocab_size = plan_.parameters.vocab_size,
                       .memory_limit = options_.memory_limit};
    for (const uint64_t number : numbers) {
      totals.documents += plan_.entries[number].documents();
      totals.bytes += plan_.entries[number].bytes();
    }
    BuildProgress progress(watch_, totals);
    progress_ = &progress;
    pending_ = std::move(numbers);

    while (true) {
      run_workers();
      if (is_stopped_) break;
      if (claimed_.empty() || !options_.waits_for_others) break;
      // Others build these. Those they finish are done, those they give up are ours.
      pending_ = std::move(claimed_);
      claimed_.clear();
      next_ = 0;
      std::this_thread::sleep_for(milliseconds(100));
    }
    // It is made anew from the chunks where it is missing.
    [[maybe_unused]] const Status kept = keep_registry();
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
    constexpr uint64_t kMebibyte = uint64_t{1} << 20;
    if (options_.memory_limit < kBaseMemory + each)
      return Error{ErrorCode::invalid_argument,
                   "--memory-limit " + format_byte_count(options_.memory_limit) +
                       " is too small: the largest chunk needs about " + format_byte_count(each) +
                       " beside " + format_byte_count(kBaseMemory) + " for the program; " +
                       // Rounded up: what is told must do.
                       std::to_string((kBaseMemory + each + kMebibyte - 1) / kMebibyte) +
                       " MiB would do for one worker, or a new set with fewer --chunk-sequences"};
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
      } else if (*outcome == Outcome::claimed) {
        claimed_.push_back(number);
      } else if (*outcome == Outcome::there) {
        ++report_.by_others;
      }
    }
  }

  Result<Outcome> build(uint64_t number, unsigned worker, RangeReader& reader) {
    const PlanEntry& entry = plan_.entries[number];
    const Digest key = plan_.key_of(entry).digest();
    LMEMO_ASSIGN(bool is_there, is_published(number, key));
    if (!is_there && !claims_->try_claim(number)) return Outcome::claimed;
    ChunkSteps steps(*progress_, entry.bytes(), entry.documents());
    if (is_there) {
      LMEMO_TRY(steps.reach(BuildPhase::publish, 1));
      return Outcome::there;
    }
    Result<bool> again = is_published(number, key);  // Between the look and the claim?
    Status built;
    if (again.ok() && !*again) built = build_claimed(number, entry, worker, reader, steps);
    claims_->release(number);
    LMEMO_ASSIGN(is_there, std::move(again));
    LMEMO_TRY(built);
    return is_there ? Outcome::there : Outcome::built;
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

  Status build_claimed(uint64_t number, const PlanEntry& entry, unsigned worker, RangeReader& reader,
                       ChunkSteps& steps) {
    FileSystem& files = real_file_system();
    LMEMO_ASSIGN(ChunkTokens tokens, tokens_of(plan_, entry, tokenizer_, options_.is_strict, reader, &steps));
    ChunkContent content;
    content.number = number;
    content.ranges = entry.contents();
    content.left_out = tokens.left_out;
    content.tokens = tokens.tokens;
    content.offsets = tokens.offsets;
    const Path temporary = paths_.writing() / (std::to_string(number) + "-" + std::to_string(::getpid()) +
                                               "-" + std::to_string(worker) + ".part");
    LMEMO_TRY(files.remove(temporary));
    LMEMO_ASSIGN(const WrittenChunk written,
                 write_chunk(files, temporary, plan_.parameters, content, &steps));
    LMEMO_TRY(files.rename(temporary, paths_.chunk(number)));
    LMEMO_TRY(files.sync_directory(paths_.chunks()));
    LMEMO_ASSIGN(const FileStatus status, files.status(paths_.chunk(number)));

    steps.publish(written.counts, written.bytes);
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

  const SetPaths& paths_;
  const Plan& plan_;
  const Tokenizer& tokenizer_;
  const BuildOptions& options_;
  const Watch& watch_;
  std::vector<uint64_t> pending_;  // Constant while workers run.
  ClaimFile* claims_ = nullptr;    // Workers claim different chunks.
  BuildProgress* progress_ = nullptr;
  int64_t start_ns_ = 0;
  std::atomic<size_t> next_{0};
  std::atomic<bool> is_stopped_{false};

  std::mutex mutex_;  // Guards everything below.
  Registry registry_, fresh_;
  BuildReport report_;
  std::map<uint64_t, LineProblems> problems_;
  std::vector<uint64_t> claimed_;  // By others.
  Status fatal_;
  int64_t kept_ns_ = 0;
};

}  // namespace

// Nobody knows how many tokens there will be before they are there: 2 times the bytes is usual, 5 times is what texts take whose
// every byte is a token, 7 times one document of half as many that is all of the chunk (its text and its tokens are there twice).
uint64_t memory_for(uint64_t source_bytes) { return 7 * source_bytes + (uint64_t{32} << 20); }

uint64_t memory_of_worker(const Plan& plan, std::span<const uint64_t> numbers) {
  uint64_t largest = 0;
  for (const uint64_t number : numbers) largest = std::max(largest, plan.entries[number].bytes());
  return memory_for(largest);
}

Result<BuildReport> build_chunks(const SetPaths& paths, const Plan& plan, const Tokenizer& tokenizer,
                                 std::vector<uint64_t> numbers, const BuildOptions& options,
                                 const Watch& watch) {
  return Build(paths, plan, tokenizer, options, watch).run(std::move(numbers));
}

}  // namespace lmemo::chunks
