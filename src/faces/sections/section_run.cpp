#include <algorithm>

#include "base/sha256.h"
#include "base/units.h"
#include "codec/token_width.h"
#include "faces/sections/run_state.h"
#include "faces/sections/section_value.h"
#include "lmemo/sections.h"

namespace lmemo {
namespace {

constexpr int64_t kKeyRules = 1;  // Of this file and text_to_tokenize(): another number, other keys.

std::vector<Field> recipe_fields(const SectionRecipe& recipe) {
  return {{"tokenizer", FieldValue(recipe.tokenizer_identity)},
          {"chat_template", recipe.chat_template ? FieldValue(*recipe.chat_template) : FieldValue()},
          {"eos", recipe.eos_token ? FieldValue(*recipe.eos_token) : FieldValue()},
          {"rules", FieldValue(kKeyRules)}};
}

}  // namespace

std::string_view name_of(MissReason reason) {
  constexpr std::array<std::string_view, kMissReasons> names = {
      "new", "edited", "tokenizer_changed", "options_changed", "evicted", "damaged"};
  return names[static_cast<size_t>(reason)];
}

Result<Key> SectionRecipe::key_of(const Digest& content) const {
  std::vector<Field> fields = recipe_fields(*this);
  fields.push_back({"section", FieldValue(content)});
  return Key::of(kSectionsKind, std::move(fields));
}

Digest SectionRecipe::identity() const {
  const Result<Key> key = Key::of(kSectionsKind, recipe_fields(*this));
  return key.ok() ? key->digest() : Digest{};
}

std::string_view text_to_tokenize(std::string_view normalized, const std::optional<std::string>& eos,
                                  std::string& bytes, std::string& scratch) {
  if (!eos || normalized.ends_with(*eos)) return normalized;
  // The text lies at the end of one of the two: append there, and take the view anew, since the buffer may have moved.
  const bool is_in_bytes =
      normalized.data() >= bytes.data() && normalized.data() <= bytes.data() + bytes.size();
  std::string& buffer = is_in_bytes ? bytes : scratch;
  const size_t from = static_cast<size_t>(normalized.data() - buffer.data()), length = normalized.size();
  buffer.resize(from + length);
  buffer += *eos;
  return std::string_view(buffer).substr(from);
}

EncodeOptions section_encode_options() {
  EncodeOptions options;
  options.truncation = TruncationOptions{};
  options.padding = PaddingOptions{.length = 0};
  return options;
}

TokenWidth width_of(const SectionRecipe& recipe) { return token_width_for(recipe.tokenizer->vocab_size()); }

void TokenRow::unpack(uint32_t* to) const {
  unpack_tokens(packed_, static_cast<TokenWidth>(bytes_per_id_), to);
}

std::vector<uint32_t> TokenRow::ids() const {
  std::vector<uint32_t> ids(size());
  unpack(ids.data());
  return ids;
}

const SyncStats& SectionRun::stats() const { return state_->stats; }
size_t SectionRun::size() const { return state_->rows.size(); }
const std::vector<std::string>& SectionRun::notices() const { return state_->notices; }
unsigned SectionRun::bytes_per_id() const {
  return static_cast<unsigned>(bytes_per_token(width_of(state_->recipe)));
}
Outcome SectionRun::outcome(size_t index) const { return state_->file(index).outcome; }
MissReason SectionRun::reason(size_t index) const { return state_->file(index).reason; }
uint64_t SectionRun::token_count(size_t index) const { return state_->cut(state_->file(index).entry.number); }
Result<Key> SectionRun::key(size_t index) const {
  return state_->recipe.key_of(state_->file(index).entry.content);
}

std::filesystem::path SectionRun::path(size_t index) const {
  const State::Place place = state_->rows[index];
  const SourceListing& listing = state_->sources[place.source].listing;
  return listing.root() / listing.path(place.file);
}

namespace {

TokenRow cut_row(const SectionRun::State& state, const PackedSection& section, std::optional<Hit> hit,
                 std::shared_ptr<const std::string> owned) {
  const size_t width = bytes_per_token(section.width);
  const size_t bytes = state.cut(section.count()) * width;
  const Bytes ids = state.options.keep_end ? section.ids.last(bytes) : section.ids.first(bytes);
  return TokenRow(ids, static_cast<unsigned>(width), std::move(hit), std::move(owned));
}

}  // namespace

Result<TokenRow> SectionRun::row(size_t index) const {
  const State& state = *state_;
  const FileState& file = state.file(index);
  if (state.options.use_cache) {
    if (std::optional<Hit> hit = state.store->find(file.entry.note)) {
      const Bytes value = hit->value();
      if (const auto section = decode_section(value))
        return cut_row(state, *section, std::move(hit), nullptr);
    }
  }
  // Damaged, evicted, or never stored: once more from the file.
  const State::Place place = state.rows[index];
  const SourceListing& listing = state.sources[place.source].listing;
  LMEMO_ASSIGN(const SourceRoot root, SourceRoot::open(listing.root()));
  std::string bytes, scratch;
  LMEMO_TRY(root.read(listing.path(place.file), bytes));
  const std::string_view text = normalized_text(bytes, scratch);
  if (sha256(bytes_of(text)) != file.entry.content)
    return Error{ErrorCode::incompatible, path(index).string() + ": changed since it was synced; sync again"};
  const std::string_view texts[] = {text_to_tokenize(text, state.recipe.eos_token, bytes, scratch)};
  LMEMO_ASSIGN(const TokenBatch batch,
               state.recipe.tokenizer->encode_batch(texts, section_encode_options(), 1));
  auto value = std::make_shared<const std::string>(encode_section(batch[0], width_of(state.recipe)));
  if (state.options.use_cache) {
    LMEMO_ASSIGN(const Key key, this->key(index));
    (void)state.store->put(key, bytes_of(*value));  // A full store costs a later hit, not this row.
  }
  return cut_row(state, *decode_section(bytes_of(*value)), std::nullopt, value);
}

Result<std::string> SectionRun::explain(const std::filesystem::path& path) const {
  std::error_code error;
  const std::filesystem::path wanted = std::filesystem::weakly_canonical(path, error);
  for (const SourceState& source : state_->sources) {
    for (size_t i = 0; i < source.listing.size(); ++i) {
      if (source.listing.root() / source.listing.path(i) != wanted) continue;
      const FileState& file = source.files[i];
      switch (file.outcome) {
        case Outcome::binary: return std::string("skipped: a NUL byte in the first KiB, so it is binary");
        case Outcome::not_utf8: return std::string("skipped: not UTF-8");
        case Outcome::failed: return std::string("failed: it could not be read or tokenised");
        case Outcome::pending: return std::string("not reached: the run was stopped");
        default: break;
      }
      std::string text = file.outcome == Outcome::hit ? "hit" : "miss: " + std::string(name_of(file.reason));
      if (file.outcome == Outcome::miss) {
        switch (file.reason) {
          case MissReason::fresh: text += ": no section of this content was stored"; break;
          case MissReason::edited: text += ": section changed since the last sync"; break;
          case MissReason::tokenizer_changed: text += ": " + state_->changed_fields; break;
          case MissReason::options_changed: text += ": " + state_->changed_fields; break;
          case MissReason::evicted: text += ": it was stored and has left the store"; break;
          case MissReason::damaged: text += ": its record was damaged"; break;
        }
      }
      text += "; " + format_count(file.entry.number) + " tokens";
      if (state_->cut(file.entry.number) < file.entry.number)
        text += ", cut to " + format_count(state_->options.sequence_len) +
                " by sequence_len, which is no part of the key";
      return text;
    }
  }
  return Error{ErrorCode::invalid_argument, path.string() + ": not a file of this run"};
}

}  // namespace lmemo
