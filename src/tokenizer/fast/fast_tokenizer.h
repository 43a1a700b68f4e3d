// The quick engine: the reference's steps, with pieces looked up in a table before the model is asked.
//
// The ids are those of the reference. What a tokenizer.json needs beyond what is quick here (other normalizers, longer
// texts) is done by the reference's own parts.
#pragma once

#include <bitset>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/fast/id_buffer.h"
#include "tokenizer/fast/long_piece_table.h"
#include "tokenizer/fast/marked_text.h"
#include "tokenizer/fast/piece_model.h"
#include "tokenizer/fast/piece_splitter.h"
#include "tokenizer/fast/piece_table.h"
#include "tokenizer/fast/text_rewriter.h"
#include "tokenizer/reference/pipeline.h"
#include "tokenizer/source_text.h"

namespace lmemo::tokenizer {

// How a tokenizer.json is done quickly.
struct FastPlan {
  std::unique_ptr<TextRewriter> normalizer;  // Null: none.
  std::unique_ptr<StretchMarker> marker;     // Before a stretch is split. Null: none.
  bool adds_space = false;                   // Before a stretch that does not begin with one.
  bool may_cut_at_lines = false;  // A long text may be cut behind a newline between two visible characters.
  std::optional<std::bitset<128>> cuts_only_before;  // These ASCII characters, then. None: any.
  std::unique_ptr<PieceSplitter> splitter;
  std::unique_ptr<PieceModel> model;
  std::vector<KnownPiece> known = {};  // Before the first text.
};

class FastTokenizer final : public ReferenceTokenizer {
 public:
  FastTokenizer(Parts parts, FastPlan plan);

  Result<std::vector<uint32_t>> encode(std::string_view text, const EncodeOptions& options) const override;
  Result<TokenBatch> encode_batch(std::span<const std::string_view> texts, const EncodeOptions& options,
                                  unsigned threads) const override;
  Result<TokenBatch> encode_texts(std::span<const SourceText> texts, const EncodeOptions& options,
                                  unsigned threads) const override;
  Status save_pieces(const std::filesystem::path& path) const override;
  Result<size_t> load_pieces(const std::filesystem::path& path) const override;
  std::string_view engine() const override { return "fast"; }

 private:
  class Batch;
  class Block;

  // What one thread needs while it works.
  struct Scratch {
    TextBuffer converted;
    std::string normalized;
    std::string spaced;
    IdBuffer made;
    std::vector<std::string_view> new_texts;
  };

  // What the post-processor puts around a text.
  struct Frame {
    bool is_simple = false;  // False: the post-processor has to be asked each time.
    Ids before, after;
  };

  // What holds for all texts of one call.
  struct Call {
    bool add_special_tokens;
    const Frame& frame;
    size_t added_count;  // Special tokens that truncation leaves room for.
    LengthRules rules;

    bool is_simple() const { return frame.is_simple && !rules.truncation; }
  };

  void put_known();
  Result<Call> call_of(const EncodeOptions& options) const;
  Frame frame_of(bool add_special_tokens) const;
  // Truncation and the post-processor, on the ids from `first` on.
  void finish(IdBuffer& ids, size_t first, const Call& call) const;

  // Requires: UTF-8.
  Status encode_text(std::string_view text, const Call& call, Scratch& scratch, IdBuffer& ids) const;
  // `place`: of the front of the text, or of a part of it. Never `later`.
  Status encode_raw(std::string_view text, StretchPlace place, Scratch& scratch, IdBuffer& ids) const;
  Status encode_segment(std::string_view text, StretchPlace place, Scratch& scratch, IdBuffer& ids) const;
  Status encode_stretch(std::string_view stretch, StretchPlace place, Scratch& scratch, IdBuffer& ids) const;

  FastPlan plan_;  // Constant after construction.
  const Frame plain_frame_, special_frame_;
  const bool may_cut_;        // Long texts.
  mutable PieceTable table_;  // Both take care of their own threads.
  mutable LongPieceTable long_table_;
};

}  // namespace lmemo::tokenizer
