// Writes JSON, one value after the other, always well-formed and always valid UTF-8.
//
//   JsonWriter json;
//   json.begin_object();
//   json.member("entries", 12);
//   json.begin_array("kinds");
//   json.value("tokens");
//   json.end_array();
//   json.end_object();
//   write(json.text());   // {"entries": 12, "kinds": ["tokens"]}, indented
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lmemo {

class JsonWriter {
 public:
  void begin_object();
  void begin_object(std::string_view name);
  void end_object();
  void begin_array();
  void begin_array(std::string_view name);
  void end_array();

  void null();
  void value(bool value);
  void value(double value);  // Infinities and NaN, which JSON does not know, become null.
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool>)
  void value(Integer number) {
    plain(std::to_string(number));
  }
  template <typename T>
  void value(const std::optional<T>& maybe) {
    if (maybe) {
      value(*maybe);
    } else {
      null();
    }
  }

  template <typename T>
  void member(std::string_view name, const T& member_value) {
    key(name);
    value(member_value);
  }
  void member_null(std::string_view name) {
    key(name);
    null();
  }

  // The finished text. Requires: everything begun was ended.
  const std::string& text() const { return text_; }

 private:
  void key(std::string_view name);
  void plain(std::string_view token);
  void quoted(std::string_view text);
  void before_value();
  void open(char bracket);
  void close(char bracket);

  std::string text_;
  std::vector<bool> has_items_;  // One per open object or array.
  bool after_key_ = false;
};

}  // namespace lmemo
