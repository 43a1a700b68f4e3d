// Rows of a chunk set as the arrays a training step takes, decoded ahead by threads of its own.
//
//   LMEMO_ASSIGN(const auto set, ChunkSet::open("corpus.chunks"));
//   RowReader reader(set, {.threads = 1});
//   std::vector<int64_t> ids(rows.size() * set->sequence_length());
//   reader.expect(rows_of_the_next_batches);   // Decoded meanwhile, if there is a thread.
//   LMEMO_TRY(reader.read(rows, {.input_ids = ids.data()}, boundaries));
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "lmemo/chunks.h"
#include "lmemo/result.h"

namespace lmemo {

struct RowReaderOptions {
  uint64_t max_bytes = 256 << 20;  // Of decoded blocks kept in memory.
  unsigned threads = 0;            // That decode what is expected; 0: all is decoded when it is asked for.
  // Ids in two bytes where they fit: a pass more, which pays if blocks are kept for long.
  bool is_compact = true;
};

// Where the columns of a batch go: `row_count × sequence_length` numbers each, nullptr for those not wanted.
// Padding is `pad_id` in input_ids, kIgnoredLabel in labels and 0 in position_ids, which restart at each piece.
template <typename Number>
struct RowColumns {
  Number* input_ids = nullptr;
  Number* labels = nullptr;
  Number* position_ids = nullptr;
  Number pad_id = 0;
  bool masks_boundaries = false;  // Labels of the first token behind a boundary are ignored as well.
};
constexpr int kIgnoredLabel = -100;

// The lengths of the pieces of all rows, one after the other; row i has [row_pieces[i], row_pieces[i + 1]) of them.
struct RowBoundaries {
  std::vector<uint32_t> lengths;
  std::vector<uint32_t> row_pieces;
};

// Any number of threads may read. After fork() a child needs a reader of its own: the threads stay with the parent.
class RowReader {
 public:
  RowReader(std::shared_ptr<const ChunkSet> set, const RowReaderOptions& options);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  // `Number` is int32_t or int64_t. Rows are numbers in the set, in any order, also repeated.
  template <typename Number>
  Status read(std::span<const uint64_t> rows, const RowColumns<Number>& columns, RowBoundaries& boundaries);

  // The blocks of these rows will be wanted soon. Does nothing without threads.
  void expect(std::span<const uint64_t> rows);

  // Around fork(): once pause() returns, no thread of the reader holds a lock that the child would find locked for ever. The child does not
  // get the blocks, which it could not use: memory that two processes share is copied page by page when one of them writes,
  // at some microseconds each, and a reader writes to all of it soon. It has to leave this reader alone.
  void pause();
  void go_on();

  struct Counters {
    uint64_t blocks_decoded = 0;
    uint64_t blocks_decoded_ahead = 0;  // By the threads.
    uint64_t blocks_found = 0;          // In memory.
  };
  Counters counters() const;

 private:
  struct Rows;      // A decoded block, small.
  class SpareRows;  // Memory of blocks that were let go, for the next ones.
  using SharedRows = std::shared_ptr<const Rows>;
  struct Block {
    SharedRows rows;  // Null while somebody decodes it.
    uint64_t bytes = 0;
    bool is_queued = false;             // Expected, and nobody began.
    std::list<uint64_t>::iterator use;  // Only with rows.
  };

  Result<SharedRows> block(uint64_t number, std::unique_lock<std::mutex>& lock);
  Result<SharedRows> decode(uint64_t number, std::unique_lock<std::mutex>& lock);
  void make_room();
  void decode_ahead();

  const std::shared_ptr<const ChunkSet> set_;  // Constant after construction, as are the options.
  const RowReaderOptions options_;
  const std::shared_ptr<SpareRows> spare_;  // Guards itself.

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable block_is_there_;
  std::condition_variable work_is_there_;
  std::condition_variable all_rest_;
  std::unordered_map<uint64_t, Block> blocks_;
  std::list<uint64_t> by_use_;  // Most recent first.
  std::deque<uint64_t> expected_;
  uint64_t bytes_ = 0;
  Counters counters_;
  size_t threads_at_work_ = 0;
  // Between pause() and go_on(); nobody else gets their memory meanwhile.
  std::vector<SharedRows> kept_from_children_;
  bool is_paused_ = false;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lmemo
