#include "tokenizer/fast/fast_tokenizer.h"

#include <algorithm>
#include <limits>

#include "tokenizer/fast/saved_pieces.h"
#include "tokenizer/unicode/mappings.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

// 32 MiB for pieces and 4 MiB for their further ids, if they are ever all used.
constexpr unsigned kTableBits = 20;
constexpr unsigned kLongTableBits = 16;  // 7 MiB.

}  // namespace

FastTokenizer::FastTokenizer(Parts parts, FastPlan plan)
    : ReferenceTokenizer(std::move(parts)),
      plan_(std::move(plan)),
      plain_frame_(frame_of(false)),
      special_frame_(frame_of(true)),
      may_cut_(plan_.may_cut_at_lines && parts_.added_tokens.stay_within_lines()),
      table_(kTableBits),
      long_table_(kLongTableBits) {
  put_known();
  if (may_cut_) {  // The tables that say where are made now, not while the first text waits.
    (void)has_flag(0x80, kRegexSpace);
    (void)may_change_in_nfc(0x80);
  }
}

// The table's lines are fetched some pieces ahead.
void FastTokenizer::put_known() {
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < plan_.known.size() + kAhead; ++i) {
    if (i < plan_.known.size()) table_.prefetch(plan_.known[i].key.hash());
    if (i < kAhead) continue;
    const KnownPiece& piece = plan_.known[i - kAhead];
    table_.put(piece.key, piece.key.hash(), {&piece.id, 1});
  }
  plan_.known = {};
  table_.warm_up();
  long_table_.warm_up();
}

Result<FastTokenizer::Call> FastTokenizer::call_of(const EncodeOptions& options) const {
  const size_t added =
      parts_.post_processor && options.add_special_tokens ? parts_.post_processor->added_count() : 0;
  LMEMO_ASSIGN(LengthRules rules, length_rules_for(options, parts_.truncation, parts_.padding, added));
  return Call{options.add_special_tokens, options.add_special_tokens ? special_frame_ : plain_frame_, added,
              std::move(rules)};
}

// Asks the post-processor once, with an id that no token has.
FastTokenizer::Frame FastTokenizer::frame_of(bool add_special_tokens) const {
  Frame frame;
  frame.is_simple = true;
  if (!parts_.post_processor) return frame;
  constexpr uint32_t kText = std::numeric_limits<uint32_t>::max();
  Ids joined;
  for (const Ids& sequence : parts_.post_processor->process({Ids{kText}}, add_special_tokens))
    joined.insert(joined.end(), sequence.begin(), sequence.end());
  const auto place = std::find(joined.begin(), joined.end(), kText);
  frame.is_simple = std::count(joined.begin(), joined.end(), kText) == 1;
  if (frame.is_simple) {
    frame.before.assign(joined.begin(), place);
    frame.after.assign(place + 1, joined.end());
  }
  return frame;
}

void FastTokenizer::finish(IdBuffer& ids, size_t first, const Call& call) const {
  const std::span<const uint32_t> made = ids.from(first);
  Ids text(made.begin(), made.end());
  ids.cut_to(first);
  if (call.rules.truncation) call.rules.truncation->apply(text, call.added_count);
  if (!parts_.post_processor) return ids.append(text);
  std::vector<Ids> sequences(1);
  sequences[0] = std::move(text);
  for (const Ids& sequence : parts_.post_processor->process(std::move(sequences), call.add_special_tokens))
    ids.append(sequence);
}

Status FastTokenizer::encode_text(std::string_view text, const Call& call, Scratch& scratch,
                                  IdBuffer& ids) const {
  const size_t first = ids.size();
  if (call.is_simple()) ids.append(call.frame.before);
  LMEMO_TRY(encode_raw(text, StretchPlace::first, scratch, ids));
  if (call.is_simple()) {
    ids.append(call.frame.after);
  } else {
    finish(ids, first, call);
  }
  return {};
}

// Added tokens of the raw text, and what lies between them.
Status FastTokenizer::encode_raw(std::string_view text, StretchPlace place, Scratch& scratch,
                                 IdBuffer& ids) const {
  if (!parts_.added_tokens.has_raw(text))
    return text.empty() ? Status() : encode_segment(text, place, scratch, ids);
  LMEMO_ASSIGN(const std::vector<Segment> segments, parts_.added_tokens.split_raw(text));
  for (const Segment& segment : segments) {
    if (segment.start == segment.end) continue;
    if (segment.id) {
      ids.append(*segment.id);
    } else {
      LMEMO_TRY(encode_segment(text.substr(segment.start, segment.end - segment.start),
                               segment.start == 0 ? place : StretchPlace::later, scratch, ids));
    }
  }
  return {};
}

// Normalizes, and goes on with the added tokens of normalized text and what lies between them.
Status FastTokenizer::encode_segment(std::string_view text, StretchPlace place, Scratch& scratch,
                                     IdBuffer& ids) const {
  if (plan_.normalizer) {
    const bool tells = plan_.marker && plan_.marker->tells_first_from_later();
    if (tells && place == StretchPlace::first && parts_.normalizer->drops_start(text))
      place = StretchPlace::later;
    text = plan_.normalizer->rewrite(text, scratch.normalized);
  }
  if (!parts_.added_tokens.has_normalized(text)) return encode_stretch(text, place, scratch, ids);
  LMEMO_ASSIGN(const std::vector<Segment> segments, parts_.added_tokens.split_normalized(text));
  for (const Segment& segment : segments) {
    if (segment.start == segment.end) continue;
    if (segment.id) {
      ids.append(*segment.id);
    } else {
      LMEMO_TRY(encode_stretch(text.substr(segment.start, segment.end - segment.start),
                               segment.start == 0 ? place : StretchPlace::later, scratch, ids));
    }
  }
  return {};
}

Result<std::vector<uint32_t>> FastTokenizer::encode(std::string_view text,
                                                    const EncodeOptions& options) const {
  LMEMO_ASSIGN(const Call call, call_of(options));
  LMEMO_TRY(expect_utf8(text));
  Scratch scratch;
  IdBuffer buffer;
  LMEMO_TRY(encode_text(text, call, scratch, buffer));
  const std::span<const uint32_t> made = buffer.from(0);
  std::vector<uint32_t> ids(made.begin(), made.end());
  if (call.rules.padding) call.rules.padding->apply(ids, call.rules.padding->target(ids.size()));
  return ids;
}

Status FastTokenizer::save_pieces(const std::filesystem::path& path) const {
  return save_pieces_to(path, table_, long_table_, parts_.identity);
}

Result<size_t> FastTokenizer::load_pieces(const std::filesystem::path& path) const {
  return load_pieces_from(path, parts_.identity, table_, long_table_);
}

}  // namespace lmemo::tokenizer
