#include "tokenizer/json_document.h"

#include <cmath>
#include <limits>
#include <vector>

#include <nlohmann/json.hpp>

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;

// Takes the parser's events and builds the document; answers false to stop it.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(Json(nullptr)); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(Json(value)); }
  bool number_float(number_float_t, const string_t& digits) override {
    const double value = serde_number(digits);
    if (!std::isfinite(value)) return refuse("number " + digits + " is out of range");
    return add(Json(value));
  }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return refuse("binary value"); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    auto [slot, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(std::move(value));
    if (!is_new) return refuse("the key \"" + slot->first.substr(0, 80) + "\" stands twice in one object");
    slot_ = &slot->second;
    return true;
  }
  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string what = error.what();
    const size_t colon = what.find("syntax error");
    return refuse("not JSON at byte " + std::to_string(byte) + ": " +
                  (colon == std::string::npos ? what : what.substr(colon)).substr(0, 300));
  }

  Json root;
  std::string problem;

 private:
  bool refuse(std::string why) {
    if (problem.empty()) problem = std::move(why);
    return false;
  }

  // The place for the next value: of the last key, or at the end of the open array.
  Json* place() {
    if (open_.empty()) return &root;
    if (open_.back()->is_object()) return slot_;
    return &open_.back()->get_ref<Json::array_t&>().emplace_back();
  }

  bool add(Json value) {
    *place() = std::move(value);
    return true;
  }

  bool open(Json container) {
    if (open_.size() >= kMaxJsonDepth)
      return refuse("nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    Json* const at = place();
    *at = std::move(container);
    open_.push_back(at);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<Json*> open_;  // An open container does not move: its parent gets no new element meanwhile.
  Json* slot_ = nullptr;
};

double power_of_ten(int exponent) {
  static const std::vector<double> powers = [] {
    std::vector<double> values;
    for (int n = 0; n <= 308; ++n) values.push_back(std::strtod(("1e" + std::to_string(n)).c_str(), nullptr));
    return values;
  }();
  return powers[static_cast<size_t>(exponent)];
}

}  // namespace

double serde_number(std::string_view digits) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  size_t at = 0;
  const bool is_negative = at < digits.size() && digits[at] == '-';
  if (is_negative) ++at;
  const auto is_digit = [&] { return at < digits.size() && digits[at] >= '0' && digits[at] <= '9'; };

  // Digits that no longer fit are dropped: before the point they still count as a power of ten.
  uint64_t significand = 0;
  int64_t exponent = 0;
  bool is_full = false;
  const auto take = [&] {
    const auto digit = static_cast<uint64_t>(digits[at] - '0');
    is_full = is_full || significand > (kMax - digit) / 10;
    if (!is_full) significand = significand * 10 + digit;
    return !is_full;
  };
  for (; is_digit(); ++at)
    if (!take()) ++exponent;
  if (at < digits.size() && digits[at] == '.') {
    is_full = false;  // A long integer part is tried again behind the point, as serde_json does.
    for (++at; is_digit(); ++at)
      if (take()) --exponent;
  }
  if (at < digits.size() && (digits[at] == 'e' || digits[at] == 'E')) {
    ++at;
    const bool is_small = at < digits.size() && digits[at] == '-';
    if (at < digits.size() && (digits[at] == '-' || digits[at] == '+')) ++at;
    int64_t power = 0;
    for (; is_digit(); ++at) power = std::min<int64_t>(power * 10 + (digits[at] - '0'), 100'000'000);
    exponent += is_small ? -power : power;
  }

  auto value = static_cast<double>(significand);
  while (exponent < -308 && value != 0.0) {
    value /= 1e308;
    exponent += 308;
  }
  if (value != 0.0) {
    if (exponent > 308) return std::numeric_limits<double>::infinity();
    if (exponent >= 0) {
      value *= power_of_ten(static_cast<int>(exponent));
    } else {
      value /= power_of_ten(static_cast<int>(-exponent));
    }
  }
  return is_negative ? -value : value;
}

Result<Json> parse_json(std::string_view text) {
  if (text.size() > kMaxJsonBytes)
    return Error{ErrorCode::incompatible, "tokenizer.json: " + std::to_string(text.size()) +
                                                  " bytes; expected at most " +
                                                  std::to_string(kMaxJsonBytes)};
  Builder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder))
    return Error{ErrorCode::incompatible, "tokenizer.json: " + builder.problem};
  return std::move(builder.root);
}

std::string canonical_text(const Json& json) { return json.dump(); }

}  // namespace lmemo::tokenizer
