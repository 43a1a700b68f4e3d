// Reads JSON step by step, from front to back, without building anything: what stands in a text decides what is asked
// of it next.
//
//   JsonReader reader(text);
//   std::string_view key;
//   if (reader.open_object())
//     while (reader.next_key(key)) reader.read_number(numbers[key]);
//   if (!reader.finish()) return reader.problem();
//
// After the first problem every question is answered with false (or JsonKind::nothing), so that one look at the end is
// enough. Bounded in depth and size; keys that stand twice are for the caller to notice.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace lmemo::tokenizer {

inline constexpr size_t kMaxJsonBytes = size_t{1} << 30;
inline constexpr size_t kMaxJsonDepth = 100;  // serde_json, below HuggingFace's reader, stops at 128.

enum class JsonKind { nothing, object, array, text, number, boolean, null };

// As it was written: a whole number that fits, else the value as serde_json computes it.
struct JsonNumber {
  enum class Kind { non_negative, negative, real };
  Kind kind = Kind::non_negative;
  uint64_t whole = 0;      // Of non_negative.
  int64_t below_zero = 0;  // Of negative, which may be 0: "-0".
  double value = 0.0;      // Of all of them.
};

class JsonReader {
 public:
  // Requires: the text outlives this.
  explicit JsonReader(std::string_view text);

  JsonKind peek();

  // open…, then next… as long as it says yes, each time followed by reading (or skipping) the value.
  bool open_object();
  bool next_key(std::string_view& key);
  bool open_array();
  bool next_item();

  // Views last as long as the text and this reader.
  bool read_text(std::string_view& text);
  bool read_number(JsonNumber& number);
  bool read_boolean(bool& value);
  bool read_null();

  // Whether all went well and nothing but blanks is left.
  bool finish();
  // Stops here for a reason of the caller's. Always false.
  bool refuse(std::string why);
  const std::string& problem() const { return problem_; }
  size_t bytes_left() const { return text_.size() - at_; }

 private:
  // Fails with "not JSON at byte …".
  bool misplaced(const std::string& what);
  void skip_blanks();
  bool take_word(std::string_view word);
  bool open(char bracket);
  bool read_escaped(std::string_view& text, size_t start);
  bool read_escape(std::string& text);
  bool read_hex(uint32_t& value);
  std::string_view kept(std::string_view text);

  std::string_view text_;
  size_t at_ = 0;
  struct Open {
    char closing;
    bool is_empty;  // So far.
  };
  std::vector<Open> open_;
  // Blocks of texts that had escapes. They never grow beyond what was reserved.
  std::deque<std::string> unescaped_;
  std::string problem_;
};

// The value of a JSON number with a fraction or an exponent as serde_json computes it, which is now and then one
// unit in the last place off the nearest: Unigram compares sums of such values. Requires: a well-formed number.
double serde_number(std::string_view digits);

}  // namespace lmemo::tokenizer
