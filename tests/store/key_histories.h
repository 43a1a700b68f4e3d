#pragma once

// What each key may show: everything that was done to it, and from where on a later state must be there. Single-threaded.
//
//   histories.begin("a", "value");            // About to put; it may show from now on.
//   if (store.put(...).ok()) histories.done("a");
//   if (store.flush().ok()) histories.flushed();
//   histories.complaint("a", store.find(...), Survived::power_cut)   // nullopt: nothing to complain about.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lmemo/store.h"

namespace lmemo::test {

enum class Survived { nothing, kill, power_cut };

class KeyHistories {
 public:
  using State = std::optional<std::string>;  // Absent: not there.

  void begin(const std::string& name, State state) { at(name).states.push_back(std::move(state)); }
  // What was begun last has been acknowledged.
  void done(const std::string& name) { at(name).returned = at(name).states.size() - 1; }
  void flushed() {
    for (auto& [name, history] : histories_) history.flushed = history.returned;
  }
  // An eviction or so: every key that has a value may lose it, now or later.
  void may_lose_all() {
    for (auto& [name, history] : histories_)
      if (history.states.back()) history.states.push_back(std::nullopt);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, history] : histories_) names.push_back(name);
    return names;
  }

  std::optional<std::string> complaint(const std::string& name, const std::optional<Hit>& hit,
                                       Survived survived) const {
    const History& history = histories_.at(name);
    const size_t first = survived == Survived::power_cut ? history.flushed : history.returned;
    const State shown = hit ? State(std::string(text_of(hit->value()))) : std::nullopt;
    for (size_t i = first; i < history.states.size(); ++i)
      if (history.states[i] == shown) return std::nullopt;
    std::string text = "key " + name + " shows " + describe(shown) + ", expected one of";
    for (size_t i = first; i < history.states.size(); ++i) text += " " + describe(history.states[i]);
    return text;
  }
  // Never anything but what was put under this key at some time.
  bool was_ever(const std::string& name, const std::optional<Hit>& hit) const {
    const History& history = histories_.at(name);
    for (const State& state : history.states)
      if (!hit || (state && *state == text_of(hit->value()))) return true;
    return false;
  }

 private:
  struct History {
    std::vector<State> states{std::nullopt};
    size_t returned = 0;  // The earliest state that may show after kill -9: promise 6.
    size_t flushed = 0;   // … after a power cut: promise 3.
  };
  History& at(const std::string& name) { return histories_[name]; }
  static std::string describe(const State& state) {
    return state ? "\"" + state->substr(0, 24) + "\"" : std::string("nothing");
  }

  std::map<std::string, History> histories_;
};

}  // namespace lmemo::test
