// The work of a sync over one source: look, read what is not known, tokenise what is not stored. See section_sync.cpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/claim_file.h"
#include "faces/sections/run_state.h"
#include "faces/sections/tree_memory.h"

namespace lmemo {

class SourceSync {
 public:
  // `directory` empty: nothing is remembered and nothing shared.
  SourceSync(SectionRun::State& run, SourceState& source, std::filesystem::path directory,
             const Watch& watch);
  // What could not be done for a single file is a notice.
  Status run();

 private:
  struct Group {
    uint32_t first = 0, count = 0;  // Of todo_.
    uint64_t claim_first = 0, claim_count = 0;
  };
  struct Batch;

  void look();
  void make_groups();
  double sampled_tokens_per_byte() const;
  void look_for_room();
  void work();
  std::optional<Group> next_group(std::vector<Group>& claimed);
  void process(const Group& group);
  void tokenize(Batch& batch);
  bool take_hit(FileState& file, const std::optional<size_t>& known);
  MissReason reason_of(size_t file) const;
  void finish(const Group& group);
  void publish(bool even_if_young);
  void settle_copies();
  Status remember();
  void notice(std::string text);

  SectionRun::State& run_;
  SourceState& source_;
  Store& store_;
  const Watch& watch_;
  const std::filesystem::path directory_;
  const unsigned threads_;
  const TokenWidth width_;
  std::optional<SourceRoot> root_;
  std::filesystem::path named_;  // The source, resolved.
  TreePlace place_;
  std::shared_ptr<const StatMemory> memory_;    // Of this recipe.
  std::optional<FoundMemory> other_;            // Of another one.
  std::vector<std::optional<uint32_t>> known_;  // By file: its place in memory_.
  std::vector<bool> is_in_other_;               // By file: other_ has the path.
  std::vector<uint32_t> todo_;                  // Files to read, by group.
  std::optional<ClaimFile> claims_;
  bool is_memory_changed_ = false;
  uint64_t todo_bytes_ = 0;
  std::atomic<uint64_t> done_bytes_{0};

  std::mutex mutex_;  // Guards everything below, and notices and stats of the run, while threads work.
  std::deque<Group> groups_;     // To be done.
  std::deque<Group> postponed_;  // Somebody else has them.
  std::vector<Group> finished_;  // Not yet published.
  int64_t last_publish_ns_ = 0;
  std::unordered_map<Digest, uint64_t> tokens_of_;   // Sections met in this run; ~0: being made.
  std::vector<std::pair<uint32_t, Digest>> copies_;  // Files with the content of one being made.
};

}  // namespace lmemo
