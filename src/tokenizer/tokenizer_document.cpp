#include "tokenizer/tokenizer_document.h"

#include <cmath>
#include <limits>

#include "tokenizer/json_fields.h"
#include "tokenizer/json_reader.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxId = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMaxExactWhole = uint64_t{1} << 53;

Json json_of(const JsonNumber& number) {
  switch (number.kind) {
    case JsonNumber::Kind::non_negative: return number.whole;
    case JsonNumber::Kind::negative: return number.below_zero;
    case JsonNumber::Kind::real: break;
  }
  return number.value;
}

// Answers false when something is wrong; what it is stands in the reader, or in `refusal_`.
class DocumentReader {
 public:
  DocumentReader(JsonReader& reader, TokenizerDocument& document) : reader_(reader), document_(document) {}

  Status read() {
    if (!read_value(document_.tree, Place::top) || !reader_.finish()) {
      if (refusal_) return *refusal_;
      return Error{ErrorCode::incompatible, "tokenizer.json: " + reader_.problem()};
    }
    return {};
  }

 private:
  enum class Place { top, model, elsewhere };

  bool refuse(const std::string& where, const std::string& what) {
    if (!refusal_ && reader_.problem().empty()) refusal_ = refusal(where, what);
    return false;
  }
  bool refuse_repeated(std::string_view key) {
    return reader_.refuse("the key " + shown(key) + " stands twice in one object");
  }

  bool read_value(Json& value, Place place) {
    if (++values_ > kMaxJsonValues)
      return reader_.refuse("more than " + std::to_string(kMaxJsonValues) +
                            " values beside vocabulary and merges");
    switch (reader_.peek()) {
      case JsonKind::object: return read_object(value, place);
      case JsonKind::array: return read_array(value);
      case JsonKind::null: return value = nullptr, reader_.read_null();
      case JsonKind::nothing: return false;
      case JsonKind::text: {
        std::string_view text;
        if (!reader_.read_text(text)) return false;
        value = text;
        return true;
      }
      case JsonKind::number: {
        JsonNumber number;
        if (!reader_.read_number(number)) return false;
        value = json_of(number);
        return true;
      }
      case JsonKind::boolean: {
        bool flag = false;
        if (!reader_.read_boolean(flag)) return false;
        value = flag;
        return true;
      }
    }
    return false;
  }

  bool read_object(Json& value, Place place) {
    if (!reader_.open_object()) return false;
    value = Json::object();
    auto& members = value.get_ref<Json::object_t&>();
    std::string_view key;
    while (reader_.next_key(key)) {
      const auto [member, is_new] = members.try_emplace(std::string(key));
      if (!is_new) return refuse_repeated(key);
      if (!read_member(member->second, key, place)) return false;
    }
    return reader_.problem().empty();
  }

  bool read_member(Json& value, std::string_view key, Place place) {
    if (place == Place::top && key == "model") return read_value(value, Place::model);
    if (place == Place::model) {
      const JsonKind kind = reader_.peek();
      if (key == "vocab" && kind == JsonKind::object) return value = Json::object(), read_vocabulary();
      if (key == "vocab" && kind == JsonKind::array) return value = Json::array(), read_scored();
      if (key == "merges" && kind == JsonKind::array) return value = Json::array(), read_merges();
    }
    return read_value(value, Place::elsewhere);
  }

  bool read_array(Json& value) {
    if (!reader_.open_array()) return false;
    value = Json::array();
    auto& items = value.get_ref<Json::array_t&>();
    while (reader_.next_item())
      if (!read_value(items.emplace_back(), Place::elsewhere)) return false;
    return reader_.problem().empty();
  }

  bool read_vocabulary() {
    Vocabulary& vocabulary = document_.tables.vocabulary.emplace();
    if (!reader_.open_object()) return false;
    // A token with its id takes 12 bytes or more; a third of what may come spares most of the growing.
    vocabulary.reserve(std::min(reader_.bytes_left() / 64, kMaxTokens), reader_.bytes_left() / 8);
    std::string_view token;
    while (reader_.next_key(token)) {
      if (vocabulary.size() >= kMaxTokens)
        return refuse("model.vocab", "more than " + std::to_string(kMaxTokens) + " tokens");
      JsonNumber number;
      const bool is_number = reader_.peek() == JsonKind::number;
      if (!is_number || !reader_.read_number(number) || number.kind != JsonNumber::Kind::non_negative ||
          number.whole > kMaxId) {
        Json found = json_of(number);
        if (!is_number && !read_value(found, Place::elsewhere)) return false;
        return refuse_number(found, "model.vocab[" + shown(token) + "]");
      }
      const auto id = static_cast<uint32_t>(number.whole);
      switch (vocabulary.add(token, id)) {
        case Vocabulary::Added::yes: break;
        case Vocabulary::Added::token_is_there: return refuse_repeated(token);
        case Vocabulary::Added::id_is_there:
          return refuse("model.vocab", shown(token) + " has the id " + std::to_string(id) +
                                           " of another token, " + shown(*vocabulary.token_of(id)));
      }
    }
    return reader_.problem().empty();
  }

  bool refuse_number(const Json& found, const std::string& where) {
    if (!refusal_ && reader_.problem().empty()) refusal_ = number_in(found, kMaxId, where).error();
    return false;
  }

  bool read_scored() {
    std::vector<ScoredToken>& scored = document_.tables.scored.emplace();
    if (!reader_.open_array()) return false;
    while (reader_.next_item()) {
      if (scored.size() >= kMaxTokens)
        return refuse("model.vocab", "more than " + std::to_string(kMaxTokens) + " tokens");
      ScoredToken token{};
      const auto misshapen = [&] {
        return refuse("model.vocab[" + std::to_string(scored.size()) + "]", "expected [\"token\", score]");
      };
      JsonNumber score;
      if (reader_.peek() != JsonKind::array) return misshapen();
      reader_.open_array();
      if (!reader_.next_item() || reader_.peek() != JsonKind::text || !reader_.read_text(token.token) ||
          !reader_.next_item() || reader_.peek() != JsonKind::number || !reader_.read_number(score) ||
          reader_.next_item())
        return misshapen();
      token.score = score.value;
      token.is_whole = score.kind != JsonNumber::Kind::real;
      if (token.is_whole && !(std::abs(score.value) < double{kMaxExactWhole}))
        return refuse("model.vocab[" + std::to_string(scored.size()) + "]", "the score is out of range");
      scored.push_back(token);
    }
    return reader_.problem().empty();
  }

  bool read_merges() {
    std::vector<MergeText>& merges = document_.tables.merges.emplace();
    bool& are_pairs = document_.tables.merges_are_pairs;
    if (!reader_.open_array()) return false;
    while (reader_.next_item()) {
      const auto place = [&] { return "model.merges[" + std::to_string(merges.size()) + "]"; };
      if (merges.size() >= kMaxMerges) return refuse(place(), "too many merges");
      const JsonKind kind = reader_.peek();
      if (kind != JsonKind::text && kind != JsonKind::array)
        return refuse(place(), R"(expected "a b" or ["a", "b"])");
      if (merges.empty()) are_pairs = kind == JsonKind::array;
      if (are_pairs != (kind == JsonKind::array))
        return refuse(place(), "merges are partly strings and partly pairs");
      MergeText merge;
      if (are_pairs) {
        reader_.open_array();
        if (!reader_.next_item() || reader_.peek() != JsonKind::text || !reader_.read_text(merge.left) ||
            !reader_.next_item() || reader_.peek() != JsonKind::text || !reader_.read_text(merge.right) ||
            reader_.next_item())
          return refuse(place(), R"(expected "a b" or ["a", "b"])");
      } else {
        std::string_view line;
        if (!reader_.read_text(line)) return false;
        if (line.starts_with("#version")) {
          merge.left = line;
        } else {
          const size_t space = line.find(' ');
          if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
            return refuse(place(), "expected two tokens and one space, found " + shown(line));
          merge = {line.substr(0, space), line.substr(space + 1)};
        }
      }
      merges.push_back(merge);
    }
    return reader_.problem().empty();
  }

  JsonReader& reader_;
  TokenizerDocument& document_;
  std::optional<Error> refusal_;
  size_t values_ = 0;
};

}  // namespace

TokenizerDocument::TokenizerDocument(std::unique_ptr<JsonReader> reader) : reader_(std::move(reader)) {}
TokenizerDocument::TokenizerDocument(TokenizerDocument&&) noexcept = default;
TokenizerDocument& TokenizerDocument::operator=(TokenizerDocument&&) noexcept = default;
TokenizerDocument::~TokenizerDocument() = default;

Result<TokenizerDocument> TokenizerDocument::read(std::string_view text) {
  TokenizerDocument document(std::make_unique<JsonReader>(text));
  LMEMO_TRY(DocumentReader(*document.reader_, document).read());
  return document;
}

}  // namespace lmemo::tokenizer
