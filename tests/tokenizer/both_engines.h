// The fast engine and the reference side by side.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lmemo/tokenizer.h"
#include "tokenizer/fast/fast_plan.h"
#include "tokenizer/nasty_texts.h"
#include "tokenizer/reference/loader.h"

namespace lmemo::test {

// The same file in both engines; the fast one also without special instructions.
struct Engines {
  std::shared_ptr<const Tokenizer> reference, fast, plain;

  explicit Engines(const nlohmann::json& file) {
    const std::string text = file.dump();
    auto made = tokenizer::make_reference(text);
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    reference = *made;
    fast = *Tokenizer::from_json(text);
    REQUIRE(fast->engine() == "fast");
    auto loaded = tokenizer::load_file(text);
    auto plan = tokenizer::fast_plan_of(loaded->tree, loaded->parts, false);
    plain = std::make_shared<tokenizer::FastTokenizer>(std::move(loaded->parts), std::move(*plan));
  }

  void check(const std::string& text) const {
    CAPTURE(text);
    const auto expected = reference->encode(text);
    for (const auto& engine : {fast, plain}) {
      const auto found = engine->encode(text);
      REQUIRE(found.ok() == expected.ok());
      if (expected.ok())
        REQUIRE(*found == *expected);
      else
        CHECK(found.error().message == expected.error().message);
    }
  }
};

inline void check_nasty(const Engines& engines, std::mt19937& random, size_t count) {
  for (size_t i = 0; i < count; ++i) engines.check(nasty_text(random, i % 20 == 0 ? 300 : 20));
}

// One text that is long enough to be cut, for one thread and for several: the ids of all of it at once.
inline void check_long_text(const Engines& engines, std::mt19937& random) {
  std::string text;
  while (text.size() < 3'000'000) text += nasty_text(random, 20) + (random() % 2 ? "\n" : "x\ny");
  const std::vector<std::string_view> texts = {text};
  const auto alone = engines.fast->encode_batch(texts, {}, 1);
  const auto shared = engines.fast->encode_batch(texts, {}, 3);
  REQUIRE(alone.ok());
  CHECK(std::ranges::equal(alone->ids, *engines.fast->encode(text)));
  CHECK(alone->ids == shared->ids);
  CHECK(alone->offsets == shared->offsets);
}

}  // namespace lmemo::test
