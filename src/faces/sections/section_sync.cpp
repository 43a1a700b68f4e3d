// A warm run is look(): the stamps of all files against the memory, and one touch in the store for each. What is left is cut
// into groups by a hash of the path. Threads take group by group: read, hash, ask the store, tokenise the rest in one batch,
// put it. A group is claimed between processes until what came of it is published, so that two who begin at once share the
// work; who finds a group taken goes on with others and comes back. Each begins at another group.
#include "faces/sections/section_sync.h"

#include <algorithm>
#include <bit>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/units.h"
#include "codec/checksum.h"
#include "faces/sections/section_inventory.h"
#include "faces/sections/section_value.h"

namespace lmemo {
namespace {

constexpr size_t kFilesPerGroup = 24;
constexpr uint64_t kBatchBytes = 1 << 20;
constexpr int64_t kPublishNs = 500'000'000;
constexpr int64_t kPatienceNs = 10'000'000'000;  // With a claim that is never given back.
constexpr auto kLookAgain = std::chrono::milliseconds(10);
constexpr size_t kClaimsAtOnce = 16;
constexpr uint64_t kBeingMade = ~uint64_t{0};
constexpr size_t kMaxNotices = 20;
constexpr uint64_t kEntryOverheadBytes = 360;  // Record, key, index and fields; see docs/format.md.
constexpr uint64_t kSpareShare = 8;            // Of a limit: what batches need beside what is stored.

int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

uint64_t bucket_of(std::string_view path) { return checksum(bytes_of(path)) % kClaimCount; }

}  // namespace

struct SourceSync::Batch {
  struct Text {
    uint32_t file;
    std::string bytes, scratch;
    std::string_view text;
    std::optional<Key> key;
  };
  std::deque<Text> texts;  // To be tokenised. A deque: views stay where they are.
  uint64_t byte_count = 0;
};

SourceSync::SourceSync(SectionRun::State& run, SourceState& source, std::filesystem::path directory,
                       const Watch& watch)
    : run_(run),
      source_(source),
      store_(*run.store),
      watch_(watch),
      directory_(std::move(directory)),
      threads_(run.options.threads > 0 ? run.options.threads
                                       : std::max(1u, std::thread::hardware_concurrency())),
      width_(width_of(run.recipe)) {}

void SourceSync::notice(std::string text) {
  if (run_.notices.size() >= kMaxNotices) return;
  if (run_.options.on_notice) run_.options.on_notice(text);
  run_.notices.push_back(std::move(text));
}

Status SourceSync::run() {
  WalkOptions walk;
  walk.include = source_.source.include;
  walk.exclude = source_.source.exclude;
  walk.max_files = source_.source.max_files;
  walk.max_bytes_per_file = source_.source.max_bytes_per_file;
  walk.use_default_excludes = run_.options.use_default_excludes;
  walk.use_ignore_files = run_.options.use_ignore_files;
  walk.own_directory = run_.options.own_directory;
  walk.boundary = source_.source.confine_to;
  walk.threads = threads_;
  LMEMO_ASSIGN(source_.listing, walk_sources(source_.source.path, walk, watch_));
  const SourceListing& listing = source_.listing;
  if (listing.root() == walk.own_directory)
    return Error{ErrorCode::invalid_argument, listing.root().string() +
                                                  ": this directory is the store itself; expected a source, "
                                                  "or a store in a directory of its own"};
  std::error_code gone;
  named_ = std::filesystem::canonical(source_.source.path,
                                      gone);  // A file keeps its own memory, not its directory's.
  for (const std::string& link : listing.escaping_links()) {
    if (!walk.boundary.empty())
      return Error{ErrorCode::invalid_argument,
                   (listing.root() / link).string() + ": a symbolic link that leaves " +
                       walk.boundary.string() +
                       "; sources_policy is strict: exclude it, or make the policy permissive"};
    notice((listing.root() / link).string() + ": a symbolic link that leaves the source; left out");
  }
  for (const std::string& name : listing.unreadable())
    notice((listing.root() / name).string() + ": cannot be read; left out");
  LMEMO_ASSIGN(root_, SourceRoot::open(listing.root()));
  source_.files.resize(listing.size());
  look();
  if (!todo_.empty()) {
    look_for_room();
    make_groups();
    if (!directory_.empty()) {
      std::error_code ignored;
      std::filesystem::create_directories(place_.folder, ignored);
      if (auto claims = ClaimFile::open(place_.folder / kClaimsName); claims.ok())
        claims_.emplace(std::move(*claims));
    }
    last_publish_ns_ = monotonic_ns();
    {
      std::vector<std::jthread> helpers;
      const size_t wanted = std::min<size_t>(threads_, groups_.size());
      try {
        for (size_t i = 1; i < wanted; ++i) helpers.emplace_back([this] { work(); });
      } catch (const std::system_error&) {  // No threads left: this one does it all.
      }
      work();
    }
    publish(true);
    settle_copies();
  }
  if (!directory_.empty())
    if (const Status status = remember(); !status.ok())
      notice("what was read is not remembered: " + status.error().message);
  if (watch_.stopped()) return Error{ErrorCode::interrupted, "while syncing " + listing.root().string()};
  return {};
}

bool SourceSync::take_hit(FileState& file, const std::optional<size_t>& known) {
  if (!run_.options.use_cache || !store_.touch(file.entry.note)) return false;
  if (known && memory_->entry(*known).note == file.entry.note) {
    file.entry.number = memory_->entry(*known).number;
  } else {
    // Not made by this tree before: the record says how long it is, and whether it is sound.
    const std::optional<Hit> hit = store_.find(file.entry.note);
    const auto section = hit ? decode_section(hit->value()) : std::nullopt;
    if (!section) {
      file.reason = MissReason::damaged;
      return false;
    }
    file.entry.number = section->count();
  }
  file.outcome = Outcome::hit;
  return true;
}

void SourceSync::look() {
  const SourceListing& listing = source_.listing;
  known_.assign(listing.size(), std::nullopt);
  if (!directory_.empty()) {
    place_ = place_of(directory_, named_, source_.source, run_.options, run_.recipe);
    memory_ = StatMemory::load(place_.file, place_.owner);
    if (!memory_) other_ = other_recipe(place_, label_of(named_, run_.recipe));
  }
  is_memory_changed_ = !memory_ || memory_->size() != listing.size();
  StatMemoryCursor cursor(memory_.get());
  for (uint32_t i = 0; i < listing.size(); ++i) {
    FileState& file = source_.files[i];
    if (const auto known = cursor.at(listing.path(i))) {
      known_[i] = static_cast<uint32_t>(*known);
      const StatEntry entry = memory_->entry(*known);
      if (!run_.options.rehash && entry.is_trusted(listing.stamp(i))) {
        file.entry = entry;
        if (entry.verdict != FileVerdict::text) {
          file.outcome = entry.verdict == FileVerdict::binary ? Outcome::binary : Outcome::not_utf8;
          continue;
        }
        if (run_.options.use_cache && store_.touch(entry.note)) {
          file.outcome = Outcome::hit;
          continue;
        }
      } else if (run_.options.use_cache && entry.verdict == FileVerdict::text) {
        // To be read again, and likely the same: keep what is stored from being evicted before its turn comes.
        (void)store_.touch(entry.note);
      }
    }
    todo_.push_back(i);
    todo_bytes_ += listing.stamp(i).byte_count;
  }
  if (!todo_.empty()) is_memory_changed_ = true;
  run_.stats.files_read += todo_.size();
  if (other_) {
    run_.changed_fields = label_of(named_, run_.recipe).changes_since(other_->label);
    is_in_other_.assign(listing.size(), false);
    StatMemoryCursor others(other_->memory.get());
    for (size_t i = 0; i < listing.size(); ++i) is_in_other_[i] = others.at(listing.path(i)).has_value();
  }
}

MissReason SourceSync::reason_of(size_t file) const {
  const FileState& state = source_.files[file];
  if (state.reason == MissReason::damaged) return MissReason::damaged;
  if (known_[file])
    return memory_->entry(*known_[file]).note == state.entry.note ? MissReason::evicted : MissReason::edited;
  if (other_ && is_in_other_[file])
    return other_->label.has_other_tokenizer(label_of(named_, run_.recipe)) ? MissReason::tokenizer_changed
                                                                            : MissReason::options_changed;
  return MissReason::fresh;
}

// From the corpus itself: a few files, spread over what is to be read. 0 if none of them is text.
double SourceSync::sampled_tokens_per_byte() const {
  constexpr size_t kSamples = 16, kSampleBytes = 16 << 10;
  uint64_t sampled_bytes = 0, sampled_tokens = 0;
  for (size_t sample = 0; sample < kSamples; ++sample) {
    std::string bytes, scratch;
    const uint32_t file = todo_[sample * todo_.size() / kSamples];
    if (!root_->read(source_.listing.path(file), bytes).ok() || looks_binary(bytes)) continue;
    size_t length = std::min(bytes.size(), kSampleBytes);
    while (length > 0 && length < bytes.size() && (bytes[length] & 0xC0) == 0x80) --length;
    bytes.resize(length);
    if (!is_utf8(bytes)) continue;
    const auto ids = run_.recipe.tokenizer->encode(bytes, section_encode_options());
    if (!ids.ok()) continue;
    sampled_bytes += bytes.size();
    sampled_tokens += ids->size();
  }
  return sampled_bytes == 0 ? 0 : static_cast<double>(sampled_tokens) / static_cast<double>(sampled_bytes);
}

// Before the work: what no tree leads to any more goes first, and who will not fit hears so.
void SourceSync::look_for_room() {
  if (!run_.options.use_cache) return;
  const StoreStats stats = store_.stats();
  const auto kind = stats.kinds.find(kSectionsKind);
  const KindStats sections = kind == stats.kinds.end() ? KindStats{} : kind->second;
  uint64_t limit = stats.max_bytes, used = stats.disk_bytes;
  if (sections.max_bytes > 0 && (limit == 0 || sections.max_bytes < limit))
    limit = sections.max_bytes, used = sections.stored_bytes;
  const uint64_t files = source_.listing.size(), width = bytes_per_token(width_),
                 source_bytes = source_.listing.total_bytes();
  const auto bytes_for = [&](double tokens, uint64_t count) {
    return static_cast<uint64_t>(tokens) * width + count * kEntryOverheadBytes;
  };
  // A token has at least a byte, so mostly nothing has to be sampled.
  if (limit == 0 || used + bytes_for(static_cast<double>(todo_bytes_), todo_.size()) <= limit) return;
  const double rate = sampled_tokens_per_byte();
  if (rate == 0) return;
  const uint64_t needed = used + bytes_for(static_cast<double>(todo_bytes_) * rate, todo_.size());
  if (needed + limit / kSpareShare > limit && !directory_.empty())
    if (const auto erased = erase_orphans(store_, directory_, &place_, run_.recipe.tokenizer_name);
        !erased.ok())
      notice("orphans stay: " + erased.error().message);
  const uint64_t estimate = bytes_for(static_cast<double>(source_bytes) * rate, files);
  if (estimate <= limit) return;
  notice("this corpus takes about " + format_byte_count(estimate) + " of cache, the limit is " +
         format_byte_count(limit) + ": later runs will hit about " +
         format_fixed(100.0 * static_cast<double>(limit) / static_cast<double>(estimate), 0) +
         " % of it; raise max_bytes, or narrow the corpus with include and exclude");
}

void SourceSync::make_groups() {
  const SourceListing& listing = source_.listing;
  std::vector<std::pair<uint16_t, uint32_t>> by_bucket;
  by_bucket.reserve(todo_.size());
  for (const uint32_t file : todo_) by_bucket.emplace_back(bucket_of(listing.path(file)), file);
  std::sort(by_bucket.begin(), by_bucket.end());
  // By the size of the whole listing, which two processes are likely to agree on.
  const uint64_t count =
      std::clamp<uint64_t>(std::bit_ceil(listing.size() / kFilesPerGroup + 1), 1, kClaimCount);
  const uint64_t buckets = kClaimCount / count;
  todo_.clear();
  for (const auto& [bucket, file] : by_bucket) {
    const uint64_t first = bucket / buckets * buckets;
    if (groups_.empty() || groups_.back().claim_first != first)
      groups_.push_back({static_cast<uint32_t>(todo_.size()), 0, first, buckets});
    ++groups_.back().count;
    todo_.push_back(file);
  }
  std::random_device random;
  std::rotate(groups_.begin(), groups_.begin() + static_cast<std::ptrdiff_t>(random() % groups_.size()),
              groups_.end());
}

// Null: nothing is left. `claimed` takes groups that somebody else had: what he made of them is in the store by now, or never.
std::optional<SourceSync::Group> SourceSync::next_group(std::vector<Group>& claimed) {
  if (!claimed.empty()) {
    const Group group = claimed.back();
    claimed.pop_back();
    return group;
  }
  int64_t waiting_since_ns = 0;
  for (;;) {
    std::unique_lock lock(mutex_);
    if (watch_.stopped()) return std::nullopt;
    while (!groups_.empty()) {
      const Group group = groups_.front();
      groups_.pop_front();
      if (!claims_ || claims_->try_claim(group.claim_first, group.claim_count)) return group;
      postponed_.push_back(group);
    }
    if (postponed_.empty()) return std::nullopt;
    // Others may wait for what we have: give it away before waiting for theirs.
    lock.unlock();
    publish(true);
    lock.lock();
    const bool is_impatient = waiting_since_ns != 0 && monotonic_ns() - waiting_since_ns > kPatienceNs;
    for (size_t left = postponed_.size(); left > 0 && claimed.size() < kClaimsAtOnce; --left) {
      const Group group = postponed_.front();
      postponed_.pop_front();
      if (is_impatient || claims_->try_claim(group.claim_first, group.claim_count))
        claimed.push_back(group);
      else
        postponed_.push_back(group);
    }
    lock.unlock();
    if (claimed.empty()) {
      if (waiting_since_ns == 0) waiting_since_ns = monotonic_ns();
      std::this_thread::sleep_for(kLookAgain);
      continue;
    }
    const Group group = claimed.back();
    claimed.pop_back();
    return group;
  }
}

void SourceSync::work() {
  std::vector<Group> claimed;
  while (const auto group = next_group(claimed)) {
    process(*group);
    finish(*group);
    publish(false);
    if (watch_.stopped()) break;
  }
}

void SourceSync::process(const Group& group) {
  // Who had this claim before published what he made of it, perhaps a moment ago: a miss would not look again so soon.
  if (claims_ && run_.options.use_cache) store_.refresh();
  Batch batch;
  for (uint32_t i = group.first; i < group.first + group.count; ++i) {
    if (watch_.stopped()) return;
    const uint32_t index = todo_[i];
    FileState& file = source_.files[index];
    Batch::Text& text = batch.texts.emplace_back();
    text.file = index;
    const int64_t looked_at_ns = system_clock().now_ns();
    const Result<FileStamp> stamp = root_->read(source_.listing.path(index), text.bytes);
    done_bytes_.fetch_add(source_.listing.stamp(index).byte_count, std::memory_order_relaxed);
    if (!stamp.ok()) {
      const std::lock_guard lock(mutex_);
      file.outcome = Outcome::failed;
      notice(stamp.error().message + "; left out");
      batch.texts.pop_back();
      continue;
    }
    file.entry.stamp = *stamp;
    file.entry.is_racy = is_racy(*stamp, looked_at_ns) ? 1 : 0;
    if (looks_binary(text.bytes) || !is_utf8(text.bytes)) {
      const bool is_binary = looks_binary(text.bytes);
      file.outcome = is_binary ? Outcome::binary : Outcome::not_utf8;
      file.entry.verdict = is_binary ? FileVerdict::binary : FileVerdict::not_utf8;
      file.entry.content = file.entry.note = Digest{};
      file.entry.number = 0;
      batch.texts.pop_back();
      continue;
    }
    text.text = normalized_text(text.bytes, text.scratch);
    file.entry.verdict = FileVerdict::text;
    file.entry.content = sha256(bytes_of(text.text));
    const auto known = known_[index] ? std::optional<size_t>(*known_[index]) : std::nullopt;
    if (known && memory_->entry(*known).content == file.entry.content) {
      file.entry.note = memory_->entry(*known).note;
    } else {
      Result<Key> key = run_.recipe.key_of(file.entry.content);
      file.entry.note = key->digest();
      text.key = std::move(*key);
    }
    if (take_hit(file, known)) {
      batch.texts.pop_back();
      continue;
    }
    if (run_.options.use_cache) {
      const std::lock_guard lock(mutex_);
      if (!tokens_of_.emplace(file.entry.note, kBeingMade).second) {
        copies_.emplace_back(index, file.entry.note);
        batch.texts.pop_back();
        continue;
      }
    }
    if (!text.key) text.key = *run_.recipe.key_of(file.entry.content);
    batch.byte_count += text.text.size();
    if (batch.byte_count >= kBatchBytes) tokenize(batch);
  }
  tokenize(batch);
}

void SourceSync::tokenize(Batch& batch) {
  if (batch.texts.empty()) return;
  std::vector<std::string_view> views;
  for (Batch::Text& text : batch.texts)
    views.push_back(text_to_tokenize(text.text, run_.recipe.eos_token, text.bytes, text.scratch));
  const int64_t begin_ns = monotonic_ns();
  Result<TokenBatch> tokens = run_.recipe.tokenizer->encode_batch(views, section_encode_options(), 1);
  const double seconds = static_cast<double>(monotonic_ns() - begin_ns) / 1e9;
  if (!tokens.ok()) {
    const std::lock_guard lock(mutex_);
    for (const Batch::Text& text : batch.texts) source_.files[text.file].outcome = Outcome::failed;
    notice((source_.listing.root() / source_.listing.path(batch.texts[0].file)).string() +
           " or a file near it cannot be tokenised: " + tokens.error().message);
    batch = {};
    return;
  }
  std::vector<std::string> values;
  std::vector<Item> items;
  values.reserve(batch.texts.size());
  for (size_t i = 0; i < batch.texts.size(); ++i) {
    values.push_back(encode_section((*tokens)[i], width_));
    items.push_back({&*batch.texts[i].key, bytes_of(values.back())});
  }
  const bool is_put = !run_.options.use_cache || store_.put_many(items).ok();
  const std::lock_guard lock(mutex_);
  run_.stats.total_tokenize_seconds += seconds;
  if (!is_put) run_.stats.failed_puts += items.size();
  for (size_t i = 0; i < batch.texts.size(); ++i) {
    FileState& file = source_.files[batch.texts[i].file];
    file.entry.number = (*tokens)[i].size();
    file.reason = reason_of(batch.texts[i].file);
    file.outcome = Outcome::miss;
    if (run_.options.use_cache) tokens_of_[file.entry.note] = file.entry.number;
  }
  batch = {};
}

void SourceSync::finish(const Group& group) {
  const std::lock_guard lock(mutex_);
  finished_.push_back(group);
  watch_.report({"tokenise", done_bytes_.load(std::memory_order_relaxed), todo_bytes_, "bytes"});
}

void SourceSync::publish(bool even_if_young) {
  std::vector<Group> groups;
  {
    const std::lock_guard lock(mutex_);
    const int64_t now = monotonic_ns();
    if (finished_.empty() || (!even_if_young && now - last_publish_ns_ < kPublishNs)) return;
    last_publish_ns_ = now;
    groups.swap(finished_);
  }
  if (run_.options.use_cache) (void)store_.flush();  // The store tells of a full disk itself.
  if (claims_)
    for (const Group& group : groups) claims_->release(group.claim_first, group.claim_count);
}

// Files with the same content as another of this run: stored once, and found from then on.
void SourceSync::settle_copies() {
  for (const auto& [index, key] : copies_) {
    FileState& file = source_.files[index];
    const auto made = tokens_of_.find(key);
    if (made == tokens_of_.end() || made->second == kBeingMade) continue;  // Stopped, or failed.
    file.entry.number = made->second;
    file.outcome = Outcome::hit;
  }
}

Status SourceSync::remember() {
  std::error_code error;
  if (!is_memory_changed_) {
    std::filesystem::last_write_time(place_.file, std::filesystem::file_time_type::clock::now(),
                                     error);  // Used: current_memories().
    return {};
  }
  const SourceListing& listing = source_.listing;
  std::filesystem::create_directories(place_.folder, error);
  StatMemoryWriter writer(place_.owner, label_of(named_, run_.recipe).text());
  writer.reserve(listing.size(), listing.size() * 40);
  for (size_t i = 0; i < listing.size(); ++i) {
    const FileState& file = source_.files[i];
    if (file.outcome != Outcome::pending && file.outcome != Outcome::failed) {
      writer.add(listing.path(i), file.entry);
    } else if (known_[i]) {
      writer.add(listing.path(i), memory_->entry(*known_[i]));  // Not reached: what was known stays known.
    }
  }
  return writer.write(place_.file);
}

}  // namespace lmemo
